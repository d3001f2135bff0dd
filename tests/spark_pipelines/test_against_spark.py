"""PySpark's own runner and Sluice run the same project; every table has the same rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark_pipelines.pairs import PAIRS, SOURCES
from tests.spark_pipelines.projects import land, rows_of, write_project
from tests.spark_pipelines.runner import bag, run_by_sluice, run_by_spark, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# One flow: two flows into a Parquet table take the same batch of its log, and one of them is lost.
STREAMS = """
    dp.create_streaming_table("ids")

    @dp.append_flow(target="ids")
    def of_orders():
        return spark.readStream.table("orders").filter("amount > 3").select("id")
"""
IN_SQL = """
    CREATE TEMPORARY VIEW large AS SELECT * FROM orders WHERE amount > 5;
    CREATE MATERIALIZED VIEW by_cust AS
    WITH named AS (SELECT l.*, c.name FROM large l LEFT JOIN customers c ON l.cust = c.cust)
    SELECT cust, max(name) AS name, count(*) AS n FROM named GROUP BY cust;
    CREATE STREAMING TABLE cheap AS SELECT id, amount FROM STREAM orders WHERE amount < 9;
"""
# Its runner analyses such a plan, or its own rows, before the tables are known.
OF_NULLS = (
    *("without_nulls", "without_all_nulls", "with_two_values"),
    *("filled_by_type", "filled_by_column"),
)
DROPPED = ("dropped", "explode_dropped", "explode_counted")
REFUSED_BY_SPARK = (*DROPPED, "distinct", "sql", "local", *OF_NULLS)
WHOLE = ("no_equality",)  # which Spark would compute for Sluice as well


def order(number: int, cust: int | None, state: str | None, amount: int) -> dict[str, Any]:
    at = f"2024-05-0{1 + number % 3}T0{number % 10}:00:00Z"
    row = {"id": number, "cust": cust, "state": state, "amount": amount, "price": amount / 4}
    return {**row, "at": at}


def customer(cust: int, name: str, *tags: str) -> dict[str, Any]:
    return {"cust": cust, "name": name, "state": "CA" if cust % 2 else "NY", "tags": [*tags]}


def test_both_runners_make_the_same_tables_at_first_and_after_more_rows(
    tmp_path: Path, real_spark: "SparkSession"
) -> None:
    frames = "".join(
        f"@dp.materialized_view\ndef {name}_frame():\n    return {frame}\n"
        for name, (frame, _) in PAIRS.items()
        if name not in (*WHOLE, *REFUSED_BY_SPARK)
    )
    spec = write_project(tmp_path, a_py=SOURCES + frames, b_sql=IN_SQL)
    more = "from pyspark import pipelines as dp\nfrom pyspark.sql import functions as F\n"
    write_project(tmp_path, c_py=more + "\n".join(x[4:] for x in STREAMS.splitlines()))
    landing = tmp_path / "landing"
    land(
        landing / "orders",
        "1.json",
        *(order(n, n % 4, ("CA", "NY", None)[n % 3], n) for n in range(12)),
        order(20, None, "CA", 11),
    )
    land(landing / "customers", "1.json", customer(1, "Ann", "a", "b"), customer(2, "Bob"))
    for _ in range(2):
        run_by_spark(spec, real_spark)
        run_by_sluice(spec, real_spark)
        compared = [name for name, rows in tables(spec) if bag(rows) != bag(rows_of(spec, name))]
        assert compared == []
        land(landing / "orders", "2.json", order(21, 3, "TX", 2), order(22, 1, "CA", 30))
        land(landing / "customers", "2.json", customer(3, "Cyd", "a", ""))
    assert len([*tables(spec)]) == len(PAIRS) - len(WHOLE) - len(REFUSED_BY_SPARK) + 5
