"""Expectations over a whole table, answered from Arrow columns if the table is small and simple.

The results equal those of the compiled SQL in Spark; tests compare them. The rest (row conditions,
nested columns, floats as keys) is left to Spark.
"""

import json
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluice.declare.table_spec import Expectation
from sluice.gate.rules.suite import SAMPLES, Measure, Repeats, UniquenessRule

ROW_COUNTS = ("expect_table_row_count_to_be_between", "expect_table_row_count_to_equal")


def _greatest(column: pa.ChunkedArray) -> Any:
    """Return the greatest value; like Spark, hold NaN for the greatest number."""
    has_nan = pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()
    return float("nan") if has_nan else pc.max(column).as_py()


NUMBERS: Mapping[str, Callable[[pa.ChunkedArray], Any]] = {
    "expect_column_min_to_be_between": lambda column: pc.min(column).as_py(),
    "expect_column_max_to_be_between": _greatest,
    "expect_column_sum_to_be_between": lambda column: pc.sum(column).as_py(),
    "expect_column_mean_to_be_between": lambda column: pc.mean(column).as_py(),
    "expect_column_proportion_of_non_null_values_to_be_between": lambda column: (
        (len(column) - column.null_count) / len(column) if len(column) else 0.0
    ),
}


def is_simple(expectation: Expectation, types: Mapping[str, pa.DataType]) -> bool:
    """True if Arrow has the answer for a table of these columns."""
    if "row_condition" in expectation.kwargs or not set(expectation.columns) <= types.keys():
        return False
    return not any(pa.types.is_nested(types[c]) for c in expectation.columns)


def is_a_simple_key(rule: UniquenessRule, types: Mapping[str, pa.DataType]) -> bool:
    """True if Arrow groups the columns as Spark does."""
    floats = any(pa.types.is_floating(types[c]) for c in rule.columns if c in types)
    return is_simple(rule.expectation, types) and not floats


def number(rule: Measure, rows: pa.Table) -> Any:
    """Return the number that a measure whose type is in `NUMBERS` observes."""
    return NUMBERS[rule.expectation.type](rows[rule.expectation.kwargs["column"]])


def repeats(rule: UniquenessRule, rows: pa.Table) -> Repeats:
    """Return the repeats found by grouping the rows by the rule's columns."""
    ignored = _find_ignored(rule, rows)
    judged = rows.filter(pc.invert(ignored)) if ignored is not None else rows
    groups = judged.select(rule.columns).group_by(rule.columns).aggregate([([], "count_all")])
    many = groups.filter(pc.greater(groups["count_all"], 1))
    repeated = pc.sum(many["count_all"]).as_py() or 0
    worst = many.sort_by([("count_all", "descending")]).slice(0, SAMPLES).select(rule.columns)
    samples = tuple(json.dumps(row, default=str) for row in worst.to_pylist())
    return Repeats(rows.num_rows, judged.num_rows, groups.num_rows, repeated, samples)


def _find_ignored(rule: UniquenessRule, rows: pa.Table) -> pa.ChunkedArray | None:
    nulls = [pc.is_null(rows[c]) for c in rule.columns]
    match rule.expectation.kwargs.get("ignore_row_if", "all_values_are_missing"):
        case "any_value_is_missing":
            return reduce(pc.or_, nulls)
        case "never":
            return None
    return reduce(pc.and_, nulls)
