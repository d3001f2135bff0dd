"""Measures: expectations about one number of the whole batch: a count, a sum, a greatest value.

Each is one SQL aggregate, so all of them share the pass that counts the row rules. The number is
then compared with the bounds here, as Great Expectations does it. Over no rows the number is null,
and null meets no bound.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluice.declare.expectation import Expectation
from sluice.gate.rules.row_rules import domain
from sluice.gate.rules.row_tests import Kwargs, bounds_text
from sluice.gate.rules.sql import name


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


def compile_measure(expectation: Expectation) -> Measure:
    """Return the measure of an expectation whose type is in `AGGREGATES`."""
    return Measure(expectation, words(expectation), domain(expectation.kwargs))


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
