"""Names of columns that no table of a lake may have, and those that are keywords in SQL."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.spark_pipelines.projects import read_here, rows_of, sluice, write_project

TRIPS = {
    "Fare Amt": [1.5, 2.5, 7.0],
    "_id": [1, 2, 3],
    "then": ["a", "b", "a"],
    "order": [3, 2, 1],
    "a__b": [None, "x", None],
}
HEAD = """
from pyspark import pipelines as dp
from pyspark.sql import functions as F
trips = spark.read.format("delta").load("trips")
"""
PAIRS: dict[str, tuple[str, str, list[dict[str, Any]]]] = {  # DataFrame, query, rows
    "shown": (
        'trips.filter(F.col("Fare Amt") > 2).select("_id", "`Fare Amt`", "a__b")',
        "SELECT `_id`, `Fare Amt`, a__b FROM delta.`trips` WHERE `Fare Amt` > 2",
        [{"id": 2, "fare_amt": 2.5, "a__b": "x"}, {"id": 3, "fare_amt": 7.0, "a__b": None}],
    ),
    "given": (
        'trips.select(F.expr("`Fare Amt` * 2 AS twice"), F.col("_id").alias("Trip No"))',
        "SELECT t.`Fare Amt` * 2 AS twice, `_id` AS `Trip No` FROM delta.`trips` AS t",
        [{"twice": 3.0, "trip_no": 1}, {"twice": 5.0, "trip_no": 2}, {"twice": 14.0, "trip_no": 3}],
    ),
    "read_again": (
        'spark.table("{}given").filter("`Trip No` < 3").select("Trip No")',
        "SELECT `Trip No` FROM {}given WHERE `Trip No` < 3",
        [{"trip_no": 1}, {"trip_no": 2}],
    ),
    "replaced": (
        (
            'trips.withColumn("Fare Amt", F.col("Fare Amt") + 1).drop("_id", "order", "a__b")'
            '.withColumnRenamed("then", "Now Then")'
        ),
        "SELECT `Fare Amt` + 1 AS `Fare Amt`, `then` AS `Now Then` FROM delta.`trips`",
        [
            {"fare_amt": 2.5, "now_then": "a"},
            {"fare_amt": 3.5, "now_then": "b"},
            {"fare_amt": 8.0, "now_then": "a"},
        ],
    ),
    "joined": (
        (
            'trips.join(trips.select("_id", F.col("order").alias("Our Order")), "_id")'
            '.select("_id", "Our Order")'
        ),
        (
            "WITH `the other` AS (SELECT `_id`, `order` AS `Our Order` FROM delta.`trips`)"
            " SELECT t.`_id`, `the other`.`Our Order`"
            " FROM delta.`trips` t JOIN `the other` ON t.`_id` = `the other`.`_id`"
        ),
        [{"id": 1, "our_order": 3}, {"id": 2, "our_order": 2}, {"id": 3, "our_order": 1}],
    ),
    "union": (
        (
            'trips.select((F.col("Fare Amt") * 2).alias("Fare Amt"), "_id")'
            '.unionByName(trips.select("_id", "Fare Amt").filter("_id > 2"))'
        ),
        (
            "SELECT `Fare Amt` * 2 AS `Fare Amt`, `_id` FROM delta.`trips`"
            " UNION ALL SELECT `Fare Amt`, `_id` FROM delta.`trips` WHERE `_id` > 2"
        ),
        [
            {"fare_amt": 3.0, "id": 1},
            {"fare_amt": 5.0, "id": 2},
            {"fare_amt": 14.0, "id": 3},
            {"fare_amt": 7.0, "id": 3},
        ],
    ),
    "with_missing": (
        (
            'trips.select("_id", F.upper("then").alias("Fare Amt")).unionByName('
            'trips.filter("_id = 2").select("then"), allowMissingColumns=True)'
        ),
        (
            "SELECT `_id`, upper(`then`) AS `Fare Amt`, CAST(NULL AS STRING) AS `then`"
            " FROM delta.`trips` UNION ALL SELECT CAST(NULL AS BIGINT), CAST(NULL AS STRING),"
            " `then` FROM delta.`trips` WHERE `_id` = 2"
        ),
        [
            {"id": 1, "fare_amt": "A", "then": None},
            {"id": 2, "fare_amt": "B", "then": None},
            {"id": 3, "fare_amt": "A", "then": None},
            {"id": None, "fare_amt": None, "then": "b"},
        ],
    ),
    "sides": (
        (
            'trips.alias("a").join(trips.withColumn("Fare Amt", F.lit("x")).alias("b"), "_id")'
            '.select("_id", "a.Fare Amt", F.col("b.`Fare Amt`").alias("Other"))'
        ),
        (
            "SELECT a.`_id`, a.`Fare Amt`, 'x' AS `Other` FROM delta.`trips` a"
            " JOIN delta.`trips` b ON a.`_id` = b.`_id`"
        ),
        [
            {"id": 1, "fare_amt": 1.5, "other": "x"},
            {"id": 2, "fare_amt": 2.5, "other": "x"},
            {"id": 3, "fare_amt": 7.0, "other": "x"},
        ],
    ),
    "keywords": (
        'trips.groupBy("then").agg(F.max("order").alias("order"), F.count("*").alias("when"))',
        (
            "SELECT `then`, max(`order`) AS `order`, count(*) AS `when` FROM delta.`trips`"
            " GROUP BY `then`"
        ),
        [{"then": "a", "order": 3, "when": 2}, {"then": "b", "order": 2, "when": 1}],
    ),
    "cases": (
        'trips.select(F.when(F.col("order") > 2, F.col("then")).otherwise("z").alias("case"))',
        "SELECT CASE WHEN `order` > 2 THEN `then` ELSE 'z' END AS `case` FROM delta.`trips`",
        [{"case": "a"}, {"case": "z"}, {"case": "z"}],
    ),
}


def of_pairs() -> dict[str, str]:
    """Return the files of a project with each pair."""
    frames = "".join(
        f"@dp.materialized_view\ndef frame_{name}():\n    return {frame.format('frame_')}\n"
        for name, (frame, _, _) in PAIRS.items()
    )
    queries = ";\n".join(
        f"CREATE MATERIALIZED VIEW query_{name} AS {query.format('query_')}"
        for name, (_, query, _) in PAIRS.items()
    )
    return {"a_py": HEAD + frames, "b_sql": queries}


def test_names_that_no_table_has_become_plain_ones_and_keywords_stay(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "trips", pa.table(TRIPS))
    spec = write_project(tmp_path, **of_pairs())
    planned = sluice("plan", "--spec", spec, "--strict")
    assert planned.exit_code == 0, planned.output
    done = sluice("run", "--spec", spec)
    assert done.exit_code == 0, done.output
    for name, (_, _, rows) in PAIRS.items():
        for way in ("frame", "query"):
            found = rows_of(spec, f"{way}_{name}")
            assert sorted(found, key=str) == sorted(rows, key=str), (way, name)


@pytest.mark.parametrize(
    "files",
    [
        {"a_py": f"{HEAD}@dp.materialized_view\ndef v():\n    return {{}}\n"},
        {"a_sql": "CREATE MATERIALIZED VIEW v AS {}"},
    ],
    ids=["frame", "query"],
)
def test_two_names_that_become_one_leave_a_view_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    write_deltalake(tmp_path / "trips", pa.table(TRIPS))
    frame = 'trips.select(F.col("order").alias("A b"), F.col("_id").alias("a_b"))'
    query = "SELECT `order` AS `A b`, `_id` AS a_b FROM delta.`trips`"
    made = {name: text.format(frame if name == "a_py" else query) for name, text in files.items()}
    found = read_here(write_project(tmp_path, **made), monkeypatch)
    ((_, _, problem, _),) = found["left_out"]
    assert problem in (
        "v: the name of column 'A b' is that of another one, in a table",
        "v: line 1: two columns have the same name: rename one of them by AS",
    )
