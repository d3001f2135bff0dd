"""A table's expectations, sorted by how each can be answered.

Row rules, measures and uniqueness are compiled to Spark SQL: one pass over the batch answers all of
the first two, one grouping job the third. Only what is left needs Great Expectations at run time,
whose import alone takes longer than judging a batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluice.errors import ConfigError
from sluice.quality import measures, row_rules, uniqueness
from sluice.quality.measures import Measure
from sluice.quality.row_rules import RowRule
from sluice.quality.uniqueness import Uniqueness
from sluice.specs.quality import Expectation

# Expectations that a batch of rows can't answer, however it is asked.
MEANINGLESS: Mapping[str, str] = {
    "expect_column_values_to_be_increasing": "a batch has no order of rows",
    "expect_column_values_to_be_decreasing": "a batch has no order of rows",
    "expect_table_row_count_to_equal_other_table": "a batch is one table",
    "expect_query_results_to_match_comparison": "a batch is one table",
}


@dataclass(frozen=True)
class Suite:
    """One table's rules; `others` are the expectations that Great Expectations itself runs."""

    table: str
    rows: tuple[RowRule, ...]
    measures: tuple[Measure, ...]
    uniqueness: tuple[Uniqueness, ...]
    others: tuple[Expectation, ...]

    @property
    def quarantine(self) -> tuple[RowRule, ...]:
        """The rules whose offending rows go aside."""
        return tuple(r for r in self.rows if r.expectation.on_failure == "quarantine")


def build_suite(table: str, expectations: Sequence[Expectation]) -> Suite:
    """The expectations of `table`, compiled; all that can't be done is refused together."""
    if mistakes := [f"{table}: {m}" for e in expectations for m in refusals(e)]:
        raise ConfigError(mistakes)
    compiled = row_rules.COMPILED, measures.COMPILED, uniqueness.COMPILED
    row, measure, unique = ([e for e in expectations if e.type in kind] for kind in compiled)
    return Suite(
        table,
        tuple(row_rules.compile_row_rule(e) for e in row),
        tuple(measures.compile_measure(e) for e in measure),
        tuple(uniqueness.compile_uniqueness(e) for e in unique),
        tuple(e for e in expectations if not any(e.type in kind for kind in compiled)),
    )


def refusals(expectation: Expectation) -> list[str]:
    """Why an expectation that Great Expectations knows can't be used here."""
    kind, found = expectation.type, []
    if kind in MEANINGLESS:
        found.append(f"{kind} can't be answered: {MEANINGLESS[kind]}")
    if expectation.on_failure == "quarantine" and kind not in row_rules.COMPILED:
        accepted = ", ".join(sorted(row_rules.COMPILED))
        found.append(
            f"{kind} says nothing about a single row, so it can't send rows to quarantine"
            f" (use stop or warn). accepted with quarantine: {accepted}"
        )
    if expectation.kwargs.get("condition_parser", "spark") != "spark":
        found.append(f"{kind}: row_condition is Spark SQL; condition_parser must be spark")
    if None in (expectation.kwargs.get("value_set") or ()):
        found.append(f"{kind}: null in value_set accepts every value, since null is never unequal")
    return found
