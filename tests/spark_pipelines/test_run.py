"""A spark-pipelines project, run by Sluice as it is."""

import json
from collections.abc import Mapping
from math import nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.spark_pipelines.projects import land, rows_of, sluice, write_project

ORDERS = """
    from pyspark import pipelines as dp
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    spark = SparkSession.active()

    @dp.table(comment="Orders as they arrive")
    def orders():
        return (
            spark.readStream.format("json")
            .schema("order_id BIGINT, state STRING, amount BIGINT")
            .load("landing/orders")
        )

    @dp.temporary_view
    def large():
        return spark.read.table("orders").filter(F.col("amount") >= 10)

    for state in ("CA", "NY"):
        @dp.materialized_view(name=f"orders_{state}")
        def of_state():
            return spark.read.table("large").filter(F.col("state") == state)
"""
BY_STATE = """
    -- two statements; and a semicolon in a comment
    CREATE OR REFRESH MATERIALIZED VIEW by_state
    COMMENT 'Amounts; by state'
    PARTITIONED BY (state, bucket(4, orders))
    CLUSTER  BY (amount)
    DEFAULT COLLATION UTF8_BINARY
    TBLPROPERTIES ('quality' = 'gold')
    AS SELECT state, count(*) AS orders, sum(amount) AS amount
    FROM large GROUP BY state;

    CREATE STREAMING TABLE cheap AS SELECT order_id FROM STREAM(orders) WHERE amount < 10;
"""


def test_a_project_runs_and_a_later_run_reads_only_what_is_new(tmp_path: Path) -> None:
    spec = write_project(tmp_path, orders_py=ORDERS, by_state_sql=BY_STATE)
    first = {"order_id": 1, "state": "CA", "amount": 10}
    land(tmp_path / "landing/orders", "1.json", first, {**first, "order_id": 2, "amount": 3})
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 0, ran.output
    assert rows_of(spec, "by_state") == [{"state": "CA", "orders": 1, "amount": 10}]
    assert rows_of(spec, "cheap") == [{"order_id": 2}]

    land(tmp_path / "landing/orders", "2.json", {"order_id": 3, "state": "NY", "amount": 20})
    ran = sluice("run", "--spec", spec, "--format", "json")
    assert ran.exit_code == 0, ran.output
    by_state = sorted(rows_of(spec, "by_state"), key=lambda row: str(row["state"]))
    assert [tuple(row.values()) for row in by_state] == [("CA", 1, 10), ("NY", 1, 20)]
    assert [row["order_id"] for row in rows_of(spec, "orders_ny")] == [3]
    assert [row["order_id"] for row in rows_of(spec, "orders_ca")] == [1]
    why = json.loads(sluice("why", "by_state", "--spec", spec, "NY", "--json").stdout)
    assert why["from"][-1]["deliveries"][0]["files"] == [f"{tmp_path}/landing/orders/2.json"]


def test_the_template_of_spark_pipelines_runs_unchanged(tmp_path: Path) -> None:
    from pyspark.pipelines import init_cli

    spec = write_project(
        tmp_path,
        example_python_materialized_view_py=init_cli.PYTHON_EXAMPLE,
        example_sql_materialized_view_sql=init_cli.SQL_EXAMPLE,
    )
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 0, ran.output
    assert len(rows_of(spec, "example_python_materialized_view")) == 10
    even = rows_of(spec, "example_sql_materialized_view")
    assert sorted(row["id"] for row in even) == [0, 2, 4, 6, 8]


def test_a_run_refreshes_only_the_tables_that_are_named(tmp_path: Path) -> None:
    spec = write_project(tmp_path, orders_py=ORDERS, by_state_sql=BY_STATE)
    land(tmp_path / "landing/orders", "1.json", {"order_id": 1, "state": "CA", "amount": 10})
    assert sluice("run", "--spec", spec).exit_code == 0
    land(tmp_path / "landing/orders", "2.json", {"order_id": 2, "state": "CA", "amount": 4})
    named = "spark_catalog.default.Orders, CHEAP"
    ran = sluice("run", "--spec", spec, "--refresh", named, "--format", "json")
    assert ran.exit_code == 0, ran.output
    ran_for = {json.loads(line)["table"] for line in ran.stdout.splitlines()}
    assert ran_for == {"shop.orders", "shop.cheap"}
    assert [row["order_id"] for row in rows_of(spec, "cheap")] == [2]

    ran = sluice("run", "--spec", spec, "--full-refresh", "by_state", "--format", "json")
    again = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {(one["table"], one["strategy"]) for one in again} == {
        ("shop.by_state__state", "build"),
        ("shop.by_state", "build"),
    }
    both = sluice("run", "--spec", spec, "--full-refresh-all", "--refresh", "cheap")
    assert both.exit_code == 2
    assert "leave out the others" in both.output


def test_a_dataset_that_is_left_out_is_named_where_it_is_asked_for(tmp_path: Path) -> None:
    views = """
        CREATE MATERIALIZED VIEW best AS SELECT nowhere FROM numbers;
        CREATE MATERIALIZED VIEW kept AS SELECT id, n FROM numbers;
    """
    spec = write_project(tmp_path, a_sql=views)
    write_deltalake(tmp_path / "warehouse/numbers", pa.table({"id": ["a"], "n": [1]}))
    of_best = sluice("plan", "--spec", spec, "best")
    assert "a.sql:2: best: " in of_best.output
    assert "the rest runs" in of_best.output
    warned = "warning: `sluice validate` names what is left out of spark-pipelines projects; "
    assert warned in sluice("read", "kept", "--spec", spec).stderr
    validated = sluice("validate", "--spec", spec)
    assert "no mistakes" in validated.stdout
    assert "a.sql:2: best: " in validated.stderr
    assert "unknown table 'worst'" in sluice("plan", "--spec", spec, "worst").output
    assert "best" in sluice("dry-run", "--spec", spec).output
    assert "no such folder or spec" in sluice("run", "--spec", tmp_path / "other.yml").output


def test_a_row_is_traced_to_a_table_that_others_write(tmp_path: Path) -> None:
    view = "CREATE MATERIALIZED VIEW kept AS SELECT id, max(n) AS n FROM numbers GROUP BY id"
    spec = write_project(tmp_path, a_sql=view)
    write_deltalake(tmp_path / "warehouse/numbers", pa.table({"id": ["a"], "n": [1]}))
    assert sluice("run", "--spec", spec).exit_code == 0
    found = sluice("why", "kept", "--spec", spec, "--key", "id=a")
    assert found.exit_code == 0, found.output
    assert "shop.numbers" in found.output


def test_dropna_counts_nan_as_missing(tmp_path: Path) -> None:
    """As Spark does: a row stays if enough values are neither null nor NaN."""
    frames = {
        "by_any": 'given.dropna(subset=["v", "w"])',
        "by_all": 'given.dropna(how="all", subset=["v", "w"])',
        "by_two": "given.withColumn('x', F.col('v') * 2).dropna(thresh=3)",
    }
    found = rows_of_frames(tmp_path, {n: f'{frame}.select("id")' for n, frame in frames.items()})
    kept = {name: sorted(row["id"] for row in rows) for name, rows in found.items()}
    assert kept == {"by_any": [1], "by_all": [1, 2], "by_two": [1]}


def test_fields_of_structs_are_read_from_files_and_from_tables(tmp_path: Path) -> None:
    """In any case of their names, also within arrays and maps."""
    text = """
        from pyspark import pipelines as dp

        @dp.table
        def landed():
            schema = "id BIGINT, s STRUCT<a: INT, Bc: STRING>, l ARRAY<STRUCT<q: INT>>, "
            schema += "m MAP<STRING, STRUCT<x: DOUBLE>>"
            return spark.readStream.schema(schema).json("landing/nested")

        @dp.materialized_view
        def fields():
            rows = spark.read.table("landed")
            return rows.selectExpr("id", "s.a", "s.Bc AS bc", "l[0].q", "m['k'].x")

        @dp.materialized_view
        def of_table():
            rows = spark.read.format("delta").load("warehouse/nested")
            return rows.selectExpr("id", "s.a", "s.Bc AS bc", "l[0].q")
    """
    row = {"id": 1, "s": {"a": 2, "Bc": "x"}, "l": [{"q": 3}], "m": {"k": {"x": 0.5}}}
    spec = write_project(tmp_path, a_py=text)
    land(tmp_path / "landing/nested", "1.json", row)
    rows = pa.table({name: [row[name]] for name in ("id", "s", "l")})
    write_deltalake(tmp_path / "warehouse/nested", rows)
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 0, ran.output
    expected = {"id": 1, "a": 2, "bc": "x", "q": 3}
    assert rows_of(spec, "of_table") == [expected]
    assert rows_of(spec, "fields") == [{**expected, "x": 0.5}]


@pytest.mark.parametrize(
    ("schema", "row"),
    [
        ("id INT NOT NULL, v STRING COMMENT 'a, b'", {"id": 1, "v": "x"}),
        ("id INT, `Full Name` STRING", {"id": 1, "full_name": "x"}),
        ("struct<id:int,v:string>", {"id": 1, "v": "x"}),
    ],
)
def test_a_stream_has_the_schema_that_ddl_spells(
    tmp_path: Path, schema: str, row: dict[str, Any]
) -> None:
    text = f"""
        from pyspark import pipelines as dp

        @dp.table
        def landed():
            return spark.readStream.schema({schema!r}).json("landing/f")
    """
    spec = write_project(tmp_path, a_py=text)
    land(tmp_path / "landing/f", "1.json", {"id": 1, "v": "x", "Full Name": "x"})
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 0, ran.output
    assert rows_of(spec, "landed") == [row]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("id INT, v INTERVAL DAY", "can't read the schema"),
        ("id INT, s STRUCT<`a b`: INT>", "column 's': unknown type"),
        ("id", "can't read the schema 'id'"),
    ],
)
def test_a_schema_that_no_table_can_have_leaves_one_table_out(
    tmp_path: Path, schema: str, why: str
) -> None:
    text = f"""
        from pyspark import pipelines as dp

        @dp.table
        def landed():
            return spark.readStream.schema({schema!r}).json("landing/f")

        @dp.materialized_view
        def other():
            return spark.range(2)
    """
    spec = write_project(tmp_path, a_py=text)
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 0, ran.output
    assert f"transformations/a.py:4: landed: {why}" in ran.output
    assert len(rows_of(spec, "other")) == 2


def test_fillna_fills_columns_of_the_values_type_or_by_name(tmp_path: Path) -> None:
    """As Spark does: a number fills numbers, NaN among them; a dictionary fills what it names.

    JSON has null for NaN.
    """
    frames = {
        "by_number": "given.fillna(7)",
        "by_text": 'given.fillna("?")',
        "by_subset": 'given.na.fill(7.9, ["id", "w"])',
        "by_name": 'given.fillna({"V": 3, "w": "none"})',
    }
    found = rows_of_frames(tmp_path, frames)
    filled = {
        name: [[row[c] for row in sorted(rows, key=lambda row: row["id"])] for c in "vw"]
        for name, rows in found.items()
    }
    assert filled["by_number"] == [[1.0, 7.0, 7.0, 7.0], ["a", "b", None, None]]
    assert filled["by_name"] == [[1.0, 3.0, 3.0, 3.0], ["a", "b", "none", "none"]]
    assert filled["by_text"][1] == ["a", "b", "?", "?"]
    assert filled["by_text"][0] == filled["by_subset"][0] == [1.0, None, None, None]
    assert filled["by_subset"][1] == ["a", "b", None, None]


def rows_of_frames(folder: Path, frames: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of views that are these DataFrames over a table with nulls and NaN."""
    rows = {"id": [1, 2, 3, 4], "v": [1.0, nan, None, nan], "w": ["a", "b", None, None]}
    write_deltalake(folder / "given", pa.table(rows))
    text = (
        "from pyspark import pipelines as dp\nfrom pyspark.sql import functions as F\n"
        'given = spark.read.format("delta").load("given")\n'
    )
    for name, frame in frames.items():
        text += f"@dp.materialized_view\ndef {name}():\n    return {frame}\n"
    spec = write_project(folder, a_py=text)
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 0, ran.output
    return {name: rows_of(spec, name) for name in frames}
