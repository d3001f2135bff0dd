"""Names that are keywords are read back as names, and others are written as before."""

import pytest
from sqlglot import exp

from sluice.language.syntax import parse, render

NAMES = ("then", "case", "comment", "values", "null", "current_date", "from")
TEXTS = ("x", "x + 1", "CASE WHEN a > 1 THEN x ELSE a END", "UPPER(x)")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", TEXTS)
def test_a_rendered_keyword_is_the_same_column_again(name: str, text: str) -> None:
    tree = parse(text)
    for column in tree.find_all(exp.Column):
        column.this.set("this", name if column.name == "x" else column.name)
    again = parse(render(tree))
    assert [column.name for column in again.find_all(exp.Column)].count(name) == 1
    assert render(again) == render(tree)


@pytest.mark.parametrize("text", ["UPPER(comment)", "offset + 1", "s.then = 1", "order > date"])
def test_a_name_that_is_read_as_it_is_stays_without_quotes(text: str) -> None:
    """Else definitions would seem to have changed."""
    assert render(parse(text)) == text
