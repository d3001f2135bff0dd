"""Kept results: one row per expectation and batch, in Great Expectations' JSON."""

import datetime as dt
import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.gate.rows import expect

from sluice.delta.note_tables import (
    append_rows,
    clean_rows,
    read_rows,
    replace_rows,
    tidy_rows,
)
from sluice.gate import history
from sluice.gate.counts import RowCounts
from sluice.gate.results import Verdict, row_outcome
from sluice.gate.row_rules import compile_row_rule

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
    assert row["observed"] == "2 of 8 values unexpected (25 %)"
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


def kept(nth: int, table: str = "sales", says: str = "fine") -> pa.Table:
    at = DAY + dt.timedelta(minutes=nth)
    row = {"pipeline": "retail", "table": table, "says": says, "batch": nth, "checked_at": at}
    return pa.Table.from_pylist([row], schema=history.SCHEMA)


def test_of_each_expectation_the_newest_results_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEPT", 2)
    rows = [kept(0), kept(3), kept(1), kept(2), kept(0, "items"), kept(0, says="rare")]
    found = history.newest_of_each(pa.concat_tables(rows)).to_pylist()
    assert sorted((row["table"], row["says"], row["batch"]) for row in found) == [
        ("items", "fine", 0),
        ("sales", "fine", 2),
        ("sales", "fine", 3),
        ("sales", "rare", 0),
    ]


def test_results_are_put_together_in_one_file_and_none_that_comes_meanwhile_is_lost(
    tmp_path: Path,
) -> None:
    uri, came = str(tmp_path / "results"), []
    for nth in range(4):
        append_rows(uri, kept(nth))

    def keep(rows: pa.Table) -> pa.Table:
        if not came:
            came.append(append_rows(uri, kept(9)))  # another batch, in between
        return history.newest_of_each(rows)

    tidy_rows(uri, 5, keep)
    assert len(DeltaTable(uri).file_uris()) == 4  # not many yet
    tidy_rows(uri, 4, keep)
    assert len(DeltaTable(uri).file_uris()) == 1
    assert sorted(row["batch"] for row in read_rows(uri)) == [0, 1, 2, 3, 9]


def test_notes_keep_no_file_and_no_log_that_nobody_needs(tmp_path: Path) -> None:
    folder, month = tmp_path / "sales__facts", 31 * 24 * 3600
    for nth in range(5):
        replace_rows(str(folder), kept(nth), "true")
    assert clean_rows(str(folder), 8) == 0  # a reader may still be at them
    assert clean_rows(str(folder), 8, hours=0) == 4
    for file in (folder / "_delta_log").iterdir():
        os.utime(file, (time.time() - month,) * 2)
    replace_rows(str(folder), kept(5), "true")
    assert clean_rows(str(folder), 8, hours=0)
    assert [row["batch"] for row in read_rows(str(folder))] == [5]
    assert len(list(folder.glob("*.parquet"))) == 1
    assert not list(folder.glob("_delta_log/0000000000000000000[0-4].json"))
