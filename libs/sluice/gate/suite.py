"""A table's expectations, grouped by their evaluation.

Row rules, measures and uniqueness are compiled to Spark SQL. One pass over the batch evaluates all
of the first two, one grouping job the third. Only the rest needs Great Expectations at run time;
importing it takes longer than judging a batch.

Measures: expectations about one number of the whole batch: a count, a sum, a greatest value.

Each is one SQL aggregate, so all of them share the pass that counts the row rules. The number is
then compared with the bounds here, as Great Expectations does it. Over no rows the number is null,
and null meets no bound.

Expectations about repeated values, which need the batch grouped.

Grouping needs a shuffle that the other rules don't, so these run separately. All share one Spark
job, which runs only if a table has such expectations. A row is unexpected if another row has its
value.

Comparisons of a whole table with another: equal row counts, or equal sums. The other table is read
at the version that this one reflects, so a lagging view does not fail for rows that it has not read
yet. Great Expectations lacks the rule about sums; it is named after the one about rows.

Freshness: bounds that move with the clock, such as `min_value: now - 36 hours`.

Only expectations over a whole table may have them, because an old batch does not get worse.
"""

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.declare.table_spec import Expectation
from sluice.errors import ConfigError
from sluice.extras import require
from sluice.gate import row_rules
from sluice.gate.row_rules import Kwargs, RowRule, bounds_text, domain
from sluice.gate.sql import every, name, some
from sluice.language.expression import Expression
from sluice.language.interval import Duration


@dataclass(frozen=True)
class Measure:
    """An expectation and its aggregate."""

    expectation: Expectation
    says: str
    domain: str

    def aggregate(self, population: str) -> str:
        """Return SQL for the number over the rows of `population` that it is about."""
        rows = f"FILTER (WHERE {population} AND {self.domain})"
        column = name(self.expectation.kwargs.get("column", ""))
        return AGGREGATES[self.expectation.type].format(column=column, rows=rows)

    def accepts(self, observed: Any) -> bool:
        kwargs = self.expectation.kwargs
        if "value" in kwargs:
            return bool(observed == kwargs["value"])
        return within(observed, kwargs)


def words(expectation: Expectation) -> str:
    """Return an expectation about one number as text: `mean of price is at least 3`."""
    kwargs = expectation.kwargs
    wanted = f"is {kwargs['value']}" if "value" in kwargs else f"is {bounds_text(kwargs)}"
    noun = expectation.type.removeprefix("expect_column_").removeprefix("expect_table_")
    noun = noun.removesuffix("_to_be_between").removesuffix("_to_equal").replace("_", " ")
    subject = f"{noun} of {kwargs['column']}" if "column" in kwargs else noun
    return f"{subject} {wanted}"


def within(observed: Any, kwargs: Kwargs) -> bool:
    """True if `observed` meets the bounds in `kwargs`; null and NaN meet none."""
    if observed is None or observed != observed:  # noqa: PLR0124  (NaN)
        return False
    low, high = (_alike(kwargs.get(key), observed) for key in ("min_value", "max_value"))
    above = low is None or (observed > low if kwargs.get("strict_min") else observed >= low)
    below = high is None or (observed < high if kwargs.get("strict_max") else observed <= high)
    return bool(above and below)


def _alike(bound: Any, observed: Any) -> Any:
    """Return a bound in the observed number's type: dates and times may be written as text."""
    if isinstance(observed, dt.datetime) and isinstance(bound, str | dt.date):
        time = dt.datetime.fromisoformat(str(bound))
        return time if time.tzinfo else time.replace(tzinfo=dt.UTC)
    if isinstance(observed, dt.date) and isinstance(bound, str):
        return dt.date.fromisoformat(bound)
    return bound


AGGREGATES: Mapping[str, str] = {
    "expect_table_row_count_to_be_between": "count(*) {rows}",
    "expect_table_row_count_to_equal": "count(*) {rows}",
    "expect_column_min_to_be_between": "min({column}) {rows}",
    "expect_column_max_to_be_between": "max({column}) {rows}",
    "expect_column_sum_to_be_between": "try_sum({column}) {rows}",
    "expect_column_mean_to_be_between": "try_avg({column}) {rows}",
    "expect_column_stdev_to_be_between": "stddev_samp({column}) {rows}",
    "expect_column_proportion_of_non_null_values_to_be_between": (
        "coalesce(try_divide(count({column}) {rows}, count(*) {rows}), 0.0D)"
    ),
}

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
        expectation,
        columns,
        domain(kwargs),
        _ignored_where(kwargs, columns),
        _says(expectation, columns),
    )


def _ignored_where(kwargs: Kwargs, columns: Sequence[str]) -> str:
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


BOUNDS = ("min_value", "max_value")
_NOW = re.compile(r"\s*now\s*(?:([+-])\s*(.+))?", re.IGNORECASE)


def at(expectation: Expectation, now: dt.datetime) -> Expectation:
    """Return the expectation with its bounds as they are at `now`, an aware time.

    Raises ValueError for a duration that can't be read, or for an expectation over a batch.
    """
    given = {bound: expectation.kwargs.get(bound) for bound in BOUNDS}
    moving = {b: v for b, v in given.items() if isinstance(v, str) and _NOW.fullmatch(v)}
    if not moving:
        return expectation
    if expectation.over != "table":
        raise ValueError(f"{next(iter(moving))}: only a rule with over: table may use now")
    fixed = {bound: _moment(value, now).isoformat() for bound, value in moving.items()}
    return expectation.model_copy(update={"kwargs": {**expectation.kwargs, **fixed}})


def _moment(text: str, now: dt.datetime) -> dt.datetime:
    sign, length = _NOW.fullmatch(text).groups()  # type: ignore[union-attr]
    if sign is None:
        return now
    duration = Duration(length.strip())
    return duration.after(now) if sign == "+" else duration.before(now)


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
    **dict.fromkeys(AGGREGATES, lambda e: Measure(e, words(e), domain(e.kwargs))),
    **dict.fromkeys(COMPILED, compile_uniqueness),
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
    meaning = MEANINGLESS.get(expectation.type, "")
    found = (meaning, _condition(expectation), _arguments(expectation))
    return [f"{expectation.type}: {why}" for why in found if why]


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


ROW_COUNT = "expect_table_row_count_to_equal_other_table"
SUM = "expect_column_sum_to_equal_other_table"
COMPARISONS = (ROW_COUNT, SUM)
COMPARED_BY: Mapping[str, tuple[str, ...]] = {
    ROW_COUNT: ("other_table_name",),
    SUM: ("column", "other_table_name", "other_column", "tolerance"),
}
OPTIONAL = frozenset({"tolerance", "other_column"})
COMMON = frozenset({"meta", "severity", "notes", "description"})


def mistakes_of_comparison(expectation: Expectation) -> list[str]:
    """Return the wrong arguments of an expectation whose type is in `COMPARISONS`."""
    given, known = set(expectation.kwargs), COMPARED_BY[expectation.type]
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
