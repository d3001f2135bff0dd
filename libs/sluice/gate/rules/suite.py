"""A table's expectations, grouped by their evaluation.

Row rules, measures and uniqueness are compiled to Spark SQL. One pass over the batch evaluates all
of the first two, one grouping job the third. Only the rest needs Great Expectations at run time;
importing it takes longer than judging a batch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sluice.declare.expectation import Expectation
from sluice.errors import ConfigError
from sluice.extras import require
from sluice.gate.rules import measures, row_rules, uniqueness
from sluice.gate.rules.measures import Measure
from sluice.gate.rules.row_rules import RowRule
from sluice.gate.rules.uniqueness import UniquenessRule
from sluice.language.expression import Expression

Rule = RowRule | Measure | UniquenessRule

# Expectations that can't be evaluated on a batch of rows.
MEANINGLESS: Mapping[str, str] = {
    "expect_column_values_to_be_increasing": "a batch of rows has no order",
    "expect_column_values_to_be_decreasing": "a batch of rows has no order",
    "expect_query_results_to_match_comparison": "only one table is at hand",
}


@dataclass(frozen=True)
class Suite:
    """Rules of one table; `others` are the expectations that Great Expectations itself runs."""

    table: str
    rows: tuple[RowRule, ...]
    measures: tuple[Measure, ...]
    uniqueness: tuple[UniquenessRule, ...]
    others: tuple[Expectation, ...]

    @property
    def quarantine(self) -> tuple[RowRule, ...]:
        """Rules that move offending rows to quarantine."""
        return tuple(r for r in self.rows if r.expectation.on_failure == "quarantine")


COMPILERS: Mapping[str, Callable[[Expectation], Rule]] = {
    **dict.fromkeys(row_rules.COMPILED, row_rules.compile_row_rule),
    **dict.fromkeys(measures.AGGREGATES, measures.compile_measure),
    **dict.fromkeys(uniqueness.COMPILED, uniqueness.compile_uniqueness),
}


def build_suite(table: str, expectations: Sequence[Expectation]) -> Suite:
    """Return the compiled expectations of `table`'s batches; mistakes are raised together.

    Expectations over the whole table are left to the sweep.
    """
    expectations = [e for e in expectations if e.over == "batch"]
    if expectations:
        require("quality", f"the gate of {table}")
    if mistakes := [f"{table}: {m}" for e in expectations for m in refusals(e)]:
        raise ConfigError(mistakes)
    rules = [COMPILERS[e.type](e) for e in expectations if e.type in COMPILERS]
    return Suite(
        table,
        tuple(rule for rule in rules if isinstance(rule, RowRule)),
        tuple(rule for rule in rules if isinstance(rule, Measure)),
        tuple(rule for rule in rules if isinstance(rule, UniquenessRule)),
        tuple(e for e in expectations if e.type not in COMPILERS),
    )


def refusals(expectation: Expectation) -> list[str]:
    """Return the reason why a known expectation can't be used here."""
    if expectation.quarantine_problem:
        return [expectation.quarantine_problem]
    found = (refuse(expectation) for refuse in (_meaning, _condition, _arguments))
    return [f"{expectation.type}: {why}" for why in found if why]


def _meaning(expectation: Expectation) -> str:
    return MEANINGLESS.get(expectation.type, "")


def _condition(expectation: Expectation) -> str:
    """Return the reason why Spark can't use a row condition."""
    condition = expectation.kwargs.get("row_condition")
    if expectation.kwargs.get("condition_parser", "spark") != "spark":
        return "row_condition is Spark SQL; condition_parser must be spark, or be left out"
    try:
        Expression.parse("true" if condition is None else str(condition))
    except ValueError as error:
        return f"row_condition: {error}"
    return ""


def _arguments(expectation: Expectation) -> str:
    """Return the reason why arguments of a compiled type can't be compiled."""
    if None in (expectation.kwargs.get("value_set") or ()):
        return "null in value_set accepts every value, since null is never unequal"
    if expectation.type not in COMPILERS or _condition(expectation):
        return ""
    try:
        COMPILERS[expectation.type](expectation)
    except KeyError as missing:
        return f"needs the argument {missing}, or a value that it knows"
    except (TypeError, ValueError) as error:
        return str(error)
    return ""
