"""Names of columns are split as Spark splits them."""

import pytest

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.expressions import split_name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a", ("a",)),
        ("a.b c.d", ("a", "b c", "d")),
        ("`a.b`.c", ("a.b", "c")),
        ("a.`b``c`", ("a", "b`c")),
    ],
)
def test_dots_separate_parts_but_not_within_backquotes(name: str, parts: tuple[str, ...]) -> None:
    assert split_name(name) == parts


@pytest.mark.parametrize("name", ["", "a.", ".a", "a..b", "`a", "a`b`", "`a`b", "`a`.b`"])
def test_other_names_are_left_to_spark(name: str) -> None:
    with pytest.raises(UnsupportedLocally):
        split_name(name)
