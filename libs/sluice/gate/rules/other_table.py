"""Expectations that compare a whole table with another: equal row counts, or equal sums.

The other table is read at the version that this one reflects. So a lagging view does not fail for
rows that it has not read yet. Great Expectations lacks the rule about sums; it is named after the
one about rows.
"""

from collections.abc import Mapping

from sluice.declare.expectation import Expectation

ROW_COUNT = "expect_table_row_count_to_equal_other_table"
SUM = "expect_column_sum_to_equal_other_table"
COMPILED = (ROW_COUNT, SUM)
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    ROW_COUNT: ("other_table_name",),
    SUM: ("column", "other_table_name", "other_column", "tolerance"),
}
OPTIONAL = frozenset({"tolerance", "other_column"})
COMMON = frozenset({"meta", "severity", "notes", "description"})


def mistakes(expectation: Expectation) -> list[str]:
    """Return the wrong arguments of an expectation whose type is in `COMPILED`."""
    given, known = set(expectation.kwargs), ARGUMENTS[expectation.type]
    if expectation.over != "table":
        return [f"{expectation.type}: a batch can't be compared with a table; write over: table"]
    missing = [a for a in known if a not in given and a not in OPTIONAL]
    extra = sorted(given - set(known) - COMMON)
    return [
        *(f"{expectation.type} needs the argument {a!r}" for a in missing),
        *(f"{expectation.type} has no argument {a!r}: {', '.join(known)}" for a in extra),
    ]


def other_column(expectation: Expectation) -> str:
    """Return the other table's column, by default the one of the same name."""
    kwargs = expectation.kwargs
    return str(kwargs.get("other_column", kwargs["column"]))
