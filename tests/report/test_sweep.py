"""What is expected over whole tables: by Arrow as by Spark, and against what a view has read."""

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from tests.gate.rows import SCHEMA, expect, random_rows
from tests.report import lake

from sluice.cli.main import main
from sluice.declare.table_spec import Expectation
from sluice.delta.log.position import head
from sluice.delta.note_tables import read_rows
from sluice.delta.places.lake_layout import layout
from sluice.gate.gate import Gate
from sluice.gate.history import TABLE
from sluice.gate.results import ExpectationOutcome, uniqueness_outcome
from sluice.gate.suite import Repeats, build_suite
from sluice.limits import Limits
from sluice.operate.maintain import sweep as full_sweep
from sluice.report.sweep import Stored, _Checks, sweep
from sluice.spark.session import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = dt.datetime(2017, 3, 9, 12, tzinfo=dt.UTC)
BY_ARROW = (
    expect("table_row_count_to_be_between", min_value=100),
    expect("table_row_count_to_equal", value=7),
    expect("column_min_to_be_between", column="quantity", min_value=0),
    expect("column_max_to_be_between", column="weight", max_value=5),
    expect("column_max_to_be_between", column="at", min_value="2017-03-02"),
    expect("column_max_to_be_between", column="department", max_value="N"),
    expect("column_sum_to_be_between", column="price", max_value=10_000),
    expect("column_mean_to_be_between", column="quantity", min_value=1),
    expect("column_proportion_of_non_null_values_to_be_between", column="id", min_value=0.5),
    expect("column_values_to_be_unique", column="id"),
    expect("column_values_to_be_unique", column="id", mostly=0.1),
    expect("column_unique_value_count_to_be_between", column="department", max_value=5),
    expect("column_proportion_of_unique_values_to_be_between", column="id", min_value=0.2),
    expect("compound_columns_to_be_unique", column_list=["quantity", "day"]),
    expect(
        "compound_columns_to_be_unique",
        column_list=["id", "day"],
        ignore_row_if="any_value_is_missing",
    ),
)
BY_SPARK = (
    expect("column_values_to_not_be_null", column="id"),
    expect("column_values_to_be_unique", column="weight"),
    expect("column_stdev_to_be_between", column="quantity", max_value=1),
    expect("table_row_count_to_equal", value=3, row_condition="quantity = 3"),
)


def whole(**rule: Any) -> str:
    given = ", ".join(f"{name}: {value}" for name, value in rule.items())
    return f"{{over: table, {given}}}"


def sale(id_: int, price: str = "1.00", at: dt.datetime = NOW) -> dict[str, Any]:
    return {"id": id_, "item": "tea", "price": Decimal(price), "weight": 1.0, "at": at}


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory, real_spark: "SparkSession") -> _Checks:
    """Random rows in place of sales."""
    project = lake.declare(tmp_path_factory.mktemp("random"))
    rows = real_spark.createDataFrame(random_rows(300, seed=3), SCHEMA).toArrow()
    table = replace(project.graph.table("sales"), columns=dict.fromkeys(rows.schema.names, ""))
    at = head(lake.put(project, "sales", rows))
    assert at is not None
    return _Checks(project, table, Stored("sales", at, Limits()), NOW)


@pytest.fixture
def judge(spark: "SparkSession") -> Any:
    def judge(
        uri: str, version: int, expected: Sequence[Expectation]
    ) -> Sequence[ExpectationOutcome]:
        rows = spark.read.format("delta").option("versionAsOf", version).load(uri)
        gate = Gate("shop.sales", tuple(expected))
        return gate.check(gate.split(rows)).outcomes

    return judge


@pytest.mark.parametrize("expectation", BY_ARROW, ids=lambda e: e.label)
def test_arrow_answers_as_spark_does(expectation: Expectation, checks: _Checks, judge: Any) -> None:
    mine, (theirs,) = checks.by_arrow(expectation), checks.by_judge([expectation], judge)
    assert mine is not None
    assert (mine.success, mine.says) == (theirs.success, theirs.says)
    sampled = ("partial_unexpected_list", "partial_unexpected_counts")
    for name, value in theirs.details.items():
        if name not in sampled:
            assert mine.details[name] == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize("expectation", BY_SPARK, ids=lambda e: e.label)
def test_what_is_not_simple_is_left_to_spark(expectation: Expectation, checks: _Checks) -> None:
    assert checks.by_arrow(expectation) is None


def test_a_full_sweep_takes_spark_for_what_needs_it(tmp_path: Path, spark: "SparkSession") -> None:
    rules = [whole(type=e.type, **e.kwargs) for e in BY_SPARK[:1]]
    other = whole(type="expect_table_row_count_to_equal", value=3)
    project = lake.declare(tmp_path, ", ".join([*rules, other]))
    lake.put(project, "sales", lake.sales({}, sale(1)))
    swept = full_sweep(Spark(project.spark), project, project.graph.table("sales"))
    assert (swept.table, swept.expectations) == ("shop.sales", 2)
    assert [t.partition(": expected that ")[2] for t in swept.unmet] == [
        "row count is 3, over the whole table: 2",
        "id is not null, over the whole table: 1 of 2 rows unexpected (50 %)",
    ]


def test_a_sweep_warns_and_keeps_its_results(tmp_path: Path) -> None:
    rule = whole(type="expect_column_values_to_be_unique", column="id")
    project = lake.declare(tmp_path, f"{rule}, {{type: expect_column_to_exist, column: id}}")
    lake.put(project, "sales", lake.sales(sale(1), sale(1), sale(2)))
    told = "id is unique, over the whole table: 2 of 3 rows unexpected (66.7 %)"
    table = project.graph.table("sales")
    assert sweep(project, table, run="m1", now=NOW) == (f"shop.sales: expected that {told}",)
    (kept,) = read_rows(f"{layout(project).root}/{TABLE}")
    assert (kept["run"], kept["success"], kept["interval_start"]) == ("m1", False, None)


def test_freshness_is_held_against_the_clock(tmp_path: Path) -> None:
    rule = whole(type="expect_column_max_to_be_between", column="at", min_value="now - 36 hours")
    project = lake.declare(tmp_path, rule)
    lake.put(project, "sales", lake.sales(sale(1)))
    table = project.graph.table("sales")
    assert sweep(project, table, now=NOW + dt.timedelta(hours=36)) == ()
    (told,) = sweep(project, table, now=NOW + dt.timedelta(hours=37))
    assert "max of at is at least now - 36 hours, over the whole table: 2017-03-09T12" in told


def test_a_view_is_held_against_the_version_of_the_source_that_it_reflects(tmp_path: Path) -> None:
    sums = {"type": "expect_column_sum_to_equal_other_table", "other_table_name": "sales"}
    rule = whole(**sums, column="total", other_column="price")
    project = lake.declare(tmp_path, totals=rule)
    for nth in range(2):
        lake.put(project, "sales", lake.sales(sale(nth, "2.50")))
    totals = pa.table({"item": ["tea"], "total": pa.array([Decimal("2.50")])})
    lake.put(project, "totals", totals, frontier={"shop.sales": 0})
    view = project.graph.table("totals")
    assert sweep(project, view) == ()
    lake.put(project, "totals", totals, frontier={"shop.sales": 0})
    (told,) = sweep(project, view)
    assert told.endswith("over the whole table: 5, the other has 2.5")


def test_as_many_rows_as_another_table(tmp_path: Path) -> None:
    rule = whole(type="expect_table_row_count_to_equal_other_table", other_table_name="sales")
    project = lake.declare(tmp_path, totals=rule)
    lake.put(project, "sales", lake.sales(sale(1), sale(2)))
    lake.put(project, "totals", pa.table({"item": ["tea"], "total": [1]}))
    (told,) = sweep(project, project.graph.table("totals"))
    assert "row count equals that of sales" in told


def test_a_table_that_is_not_built_has_nothing_to_check(tmp_path: Path) -> None:
    rule = whole(type="expect_table_row_count_to_equal", value=3)
    project = lake.declare(tmp_path, rule)
    assert sweep(project, project.graph.table("sales")) == ()


def test_the_job_and_the_command_look_at_whole_tables(tmp_path: Path) -> None:
    rule = whole(type="expect_table_row_count_to_equal", value=3)
    project = lake.declare(tmp_path, rule)
    lake.put(project, "sales", lake.sales(sale(1)))
    asked = ("--config", str(tmp_path / "config"))
    job = [sys.executable, "jobs/sweep.py", "shop.sales", *asked, "--run-id", "night"]
    done = subprocess.run(job, check=True, capture_output=True, text=True)
    (report,) = json.loads(done.stdout.splitlines()[-1])["reports"]
    told = "shop.sales: expected that row count is 3, over the whole table: 1"
    assert report == {"table": "shop.sales", "expectations": 1, "unmet": [told]}
    said = CliRunner().invoke(main, ["sweep", *asked])
    assert said.output.splitlines() == [told, "1 expectation of whole tables checked, 1 not met"]
    kept = read_rows(f"{layout(project).root}/{TABLE}")
    assert sorted(row["run"] for row in kept) == ["night", "sweep"]


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads all rows of a table."""
    monkeypatch.setattr(Stored, "rows", None)


def large(project: Any) -> Any:
    """Every table is one that is too large to be read between sweeps."""
    return project.model_copy(update={"limits": Limits(collected_bytes=0)})


def told(project: Any, name: str = "sales", **how: Any) -> dict[str, str]:
    """What the newest look at a whole table observed, by expectation."""
    results = f"{layout(project).root}/{TABLE}"
    now = NOW + dt.timedelta(microseconds=len(read_rows(results)))
    sweep(project, project.graph.table(name), now=now, **how)
    newest = (row for row in read_rows(results) if row["checked_at"] == now)
    return {row["says"].partition(",")[0]: row["observed"] for row in newest}


@pytest.mark.usefixtures("unread")
def test_statistics_answer_for_what_is_large(tmp_path: Path) -> None:
    rules = [
        whole(type="expect_column_max_to_be_between", column="at", min_value="now - 36 hours"),
        whole(type="expect_column_min_to_be_between", column="price", min_value=0),
        whole(
            type="expect_column_proportion_of_non_null_values_to_be_between",
            column="item",
            min_value=0.5,
        ),
        whole(type="expect_column_max_to_be_between", column="weight", max_value=9),
    ]
    project = large(lake.declare(tmp_path, ", ".join(rules)))
    exact = NOW.replace(microsecond=123456)
    lake.put(project, "sales", lake.sales(sale(1, "7.25"), sale(2, "-1.50")))
    lake.put(project, "sales", lake.sales(sale(3, at=exact), {"id": 4}))
    found = told(project)
    assert found == {
        "max of at is at least now - 36 hours": exact.isoformat(),
        "min of price is at least 0": "-1.5",
        "proportion of non null values of item is at least 0.5": "0.75",
    }


@pytest.mark.usefixtures("unread")
def test_a_sum_and_unique_values_go_on_from_the_last_full_look(tmp_path: Path) -> None:
    """What is expected of a large table is answered from its changes, as a full look would."""
    rules = [
        whole(type="expect_column_sum_to_be_between", column="price", max_value=100),
        whole(type="expect_column_mean_to_be_between", column="price", max_value=100),
        whole(type="expect_column_values_to_be_unique", column="id"),
        whole(type="expect_column_values_to_be_unique", column="item"),
    ]
    project = large(lake.declare(tmp_path, ", ".join(rules)))
    uri = lake.put(project, "sales", lake.sales(sale(1, "1.10"), sale(2, "2.20")))
    DeltaTable(uri).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    assert told(project) == {}

    def judge(
        uri: str, version: int, expected: Sequence[Expectation]
    ) -> Sequence[ExpectationOutcome]:
        rules = build_suite("shop.sales", expected).uniqueness
        return [uniqueness_outcome(rule, Repeats(2, 2, 2, 0, ())) for rule in rules]

    assert told(project, judge=judge)["sum of price is at most 100"] == "3.3"
    lake.put(project, "sales", lake.sales(sale(3, "3.30")))
    DeltaTable(uri).delete("id = 1")
    lake.put(project, "sales", lake.sales(sale(4, "4.00"), sale(3, "0.50")))
    assert told(project) == {
        "sum of price is at most 100": "10",
        "mean of price is at most 100": "2.5",
        "id is unique": "2 of 4 rows unexpected (50 %)",
        "item is unique": "4 of 4 rows unexpected (100 %)",
    }
    lake.put(project, "sales", lake.sales(sale(5, "0.25")))
    assert set(told(project)) == {"sum of price is at most 100", "mean of price is at most 100"}
