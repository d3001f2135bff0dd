"""The page on engines lists what each of them computes, neither more nor less."""

from tests.docs.pages import ROOT, of_language

from sluice.interpreter.expressions.compiling import FUNCTIONS
from sluice.interpreter.functions.arrays import HIGHER_ORDER
from sluice.interpreter.relations.aggregates import AGGREGATES
from sluice.interpreter.relations.window_functions import RANKERS
from sluice.language.syntax import SCALAR

PAGE = ROOT / "docs" / "small_batches.md"


def test_the_page_lists_what_needs_no_spark() -> None:
    listed = [b.text.split() for b in of_language("text") if b.page == PAGE]
    known = {*FUNCTIONS, *HIGHER_ORDER, "struct", "named_struct"}
    assert listed == [
        sorted(known & set(SCALAR)),
        sorted(AGGREGATES),
        sorted({*RANKERS, "lag", "lead"}),
        sorted(set(SCALAR) - known),
    ]
