"""Expectations about repeated values, which need the batch grouped.

Grouping needs a shuffle that the other rules don't, so these run separately. All share one Spark
job, which runs only if a table has such expectations. A row is unexpected if another row has its
value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sluice.declare.expectation import Expectation
from sluice.gate.rules.row_rules import domain
from sluice.gate.rules.row_tests import Kwargs, bounds_text
from sluice.gate.rules.sql import every, name, some

UNIQUE_ROWS = ("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique")
DISTINCT_COUNT = "expect_column_unique_value_count_to_be_between"
DISTINCT_SHARE = "expect_column_proportion_of_unique_values_to_be_between"
COMPILED = (*UNIQUE_ROWS, DISTINCT_COUNT, DISTINCT_SHARE)
SAMPLES = 20


@dataclass(frozen=True)
class UniquenessRule:
    """An expectation, the columns whose values it groups by, and the rows that it ignores."""

    expectation: Expectation
    columns: tuple[str, ...]
    domain: str
    ignored: str
    says: str

    @property
    def is_about_rows(self) -> bool:
        return self.expectation.type in UNIQUE_ROWS


@dataclass(frozen=True)
class Repeats:
    """Result of grouping: rows seen, rows considered, distinct values, rows that share a value."""

    elements: int
    considered: int
    distinct: int
    repeated: int
    samples: tuple[str, ...]

    @property
    def share(self) -> float:
        return self.distinct / self.considered if self.considered else 0.0


def compile_uniqueness(expectation: Expectation) -> UniquenessRule:
    """Return the rule of an expectation whose type is in `COMPILED`."""
    kwargs = expectation.kwargs
    columns = tuple(kwargs["column_list"]) if "column_list" in kwargs else (kwargs["column"],)
    return UniquenessRule(
        expectation, columns, domain(kwargs), _ignored(kwargs, columns), _says(expectation, columns)
    )


def _ignored(kwargs: Kwargs, columns: Sequence[str]) -> str:
    nulls = [f"{name(c)} IS NULL" for c in columns]
    match kwargs.get("ignore_row_if", "all_values_are_missing"):
        case "any_value_is_missing":
            return some(nulls)
        case "never":
            return "false"
    return every(nulls)


def _says(expectation: Expectation, columns: Sequence[str]) -> str:
    named = ", ".join(columns)
    if expectation.type in UNIQUE_ROWS:
        return f"{named} {'are together' if len(columns) > 1 else 'is'} unique"
    kind = "number" if expectation.type == DISTINCT_COUNT else "share"
    return f"{kind} of distinct {named} is {bounds_text(expectation.kwargs)}"
