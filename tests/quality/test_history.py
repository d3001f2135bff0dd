"""Kept results: one row per expectation and batch, in Great Expectations' JSON."""

import datetime as dt
import json

from tests.quality.rows import expect

from sluice.quality import history
from sluice.quality.counts import RowCounts
from sluice.quality.results import row_outcome
from sluice.quality.row_rules import compile_row_rule
from sluice.quality.verdict import Verdict

DAY = dt.datetime(2017, 3, 1, tzinfo=dt.UTC)
RULE = compile_row_rule(expect("column_values_to_be_between", "stop", column="a", min_value=0))


def test_a_verdict_becomes_one_row_per_expectation() -> None:
    outcome = row_outcome(RULE, RowCounts(10, 8, 2, ('{"a":-1}', '{"a":-2}')))
    table = history.rows(
        Verdict("retail.sales", 10, 10, (outcome,)),
        run="run-1",
        batch=4,
        checked_at=DAY,
        interval_start=DAY,
    )
    (row,) = table.to_pylist()
    assert (row["pipeline"], row["table"], row["batch"]) == ("retail", "sales", 4)
    assert (row["success"], row["on_failure"]) == (False, "stop")
    assert row["observed"] == "2 of 10 rows unexpected (25 %)"
    result = json.loads(row["result"])
    assert result["result"]["partial_unexpected_list"] == [-1, -2]
    assert result["result"]["missing_count"] == 2
    assert result["expectation_config"] == {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "a", "min_value": 0},
        "meta": {"on_failure": "stop"},
        "severity": "critical",
    }


def test_nothing_expected_leaves_no_row() -> None:
    table = history.rows(Verdict("retail.sales", 3, 3, ()), run="r", batch=1, checked_at=DAY)
    assert (table.num_rows, table.schema) == (0, history.SCHEMA)
