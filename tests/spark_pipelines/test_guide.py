"""What Spark's guide to declarative pipelines shows, as one project that both runners keep.

Its examples in the same order, in Python and in SQL, over small tables that can be checked by eye.
The format of two tables is Delta, because two flows into a Parquet table lose rows in the runner;
and a flow in SQL says BY NAME, which the runner requires.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from tests.spark_pipelines.projects import land, rows_of, sluice, write_project
from tests.spark_pipelines.runner import bag, run_by_sluice, run_by_spark, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_PYTHON = """
    from pyspark import pipelines as dp
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import col

    def read(name):
        return spark.read.format("delta").load(f"inputs/{name}")

    @dp.materialized_view
    def all_trips() -> DataFrame:
        return read("trips")

    @dp.materialized_view(name="trips_mv")
    def renamed() -> DataFrame:
        return read("trips")

    @dp.temporary_view
    def short_trips() -> DataFrame:
        return read("trips").filter("miles < 5")

    @dp.materialized_view
    def of_short_trips():
        return spark.table("short_trips").select("id")

    @dp.table
    def rides_seen() -> DataFrame:
        return spark.readStream.format("delta").load("inputs/rides")

    @dp.table
    def orders() -> DataFrame:
        return (
            spark.readStream.format("json")
            .schema("customer_id BIGINT, order_number BIGINT, order_datetime STRING")
            .load("landing/orders")
        )

    @dp.materialized_view
    def customers() -> DataFrame:
        return read("customers")

    @dp.materialized_view
    def customer_orders() -> DataFrame:
        return (
            spark.table("orders")
            .join(spark.table("customers"), "customer_id")
            .select(
                "customer_id",
                "order_number",
                "state",
                col("order_datetime").cast("int").cast("timestamp").cast("date").alias("order_date"),
            )
        )

    @dp.materialized_view
    def daily_orders_by_state() -> DataFrame:
        return (
            spark.table("customer_orders")
            .groupBy("state", "order_date")
            .count()
            .withColumnRenamed("count", "order_count")
        )

    @dp.temporary_view()
    def orders_of_customers() -> DataFrame:
        orders, customers = spark.table("orders"), spark.table("customers")
        return orders.join(customers, orders.customer_id == customers.customer_id).select(
            orders.order_number.alias("orderkey"), customers.state.alias("region")
        )

    for region in ("CA", "NY"):
        @dp.materialized_view(name=f"{region.lower()}_orders")
        def regional_orders(region_filter=region) -> DataFrame:
            return spark.table("orders_of_customers").filter(f"region = '{region_filter}'")

    def arrived(name):
        return spark.readStream.schema("id BIGINT, name STRING").json(f"landing/{name}")

    @dp.table
    def customers_us_west():
        return arrived("west")

    @dp.table
    def customers_us_east():
        return arrived("east")

    dp.create_streaming_table("customers_us", format="delta")

    @dp.append_flow(target="customers_us")
    def append_customers_us_west() -> DataFrame:
        return spark.readStream.table("customers_us_west")

    @dp.append_flow(target="customers_us")
    def append_customers_us_east() -> DataFrame:
        return spark.readStream.table("customers_us_east")
"""
IN_SQL = """
    CREATE MATERIALIZED VIEW basic_mv
    AS SELECT * FROM all_trips;

    CREATE TEMPORARY VIEW basic_tv
    AS SELECT * FROM all_trips;

    CREATE MATERIALIZED VIEW of_basic_tv
    AS SELECT id, miles * 2 AS twice FROM basic_tv;

    CREATE STREAMING TABLE basic_st
    AS SELECT * FROM STREAM customers_us_west;

    CREATE STREAMING TABLE orders_again
    AS SELECT * FROM STREAM orders;

    CREATE MATERIALIZED VIEW customer_orders_again
    AS SELECT
      c.customer_id,
      o.order_number,
      c.state,
      date(timestamp(int(o.order_datetime))) order_date
    FROM orders_again o
    INNER JOIN customers c
    ON o.customer_id = c.customer_id;

    CREATE MATERIALIZED VIEW daily_orders_again
    AS SELECT state, order_date, count(*) order_count
    FROM customer_orders_again
    GROUP BY state, order_date;

    CREATE STREAMING TABLE everybody USING delta;

    CREATE FLOW append_west
    AS INSERT INTO everybody BY NAME
    SELECT * FROM STREAM(customers_us_west);

    CREATE FLOW append_east
    AS INSERT INTO everybody BY NAME
    SELECT * FROM STREAM(customers_us_east);
"""
COUNT = 20


def write(folder: Path, name: str, **columns: list[object]) -> None:
    write_deltalake(folder / "inputs" / name, pa.table(columns), mode="append")


def project(folder: Path) -> Path:
    """The examples over a first delivery."""
    write(folder, "trips", id=[1, 2, 3], miles=[3, 9, 4])
    write(folder, "rides", id=[1, 1], miles=[3, 3])
    write(folder, "customers", customer_id=[1, 2, 3], state=["CA", "NY", "CA"])
    landing = folder / "landing"
    land(landing / "orders", "1.json", order(1, 1), order(2, 2), order(2, 3))
    land(landing / "west", "1.json", {"id": 1, "name": "Ann"})
    land(landing / "east", "1.json", {"id": 2, "name": "Bob"})
    return write_project(folder, a_py=IN_PYTHON, b_sql=IN_SQL)


def order(customer: int, number: int) -> dict[str, object]:
    at = str(1_714_521_600 + number * 40_000)
    return {"customer_id": customer, "order_number": number, "order_datetime": at}


def add_rows(folder: Path) -> None:
    write(folder, "trips", id=[4], miles=[1])
    write(folder, "rides", id=[2], miles=[8])
    landing = folder / "landing"
    land(landing / "orders", "2.json", order(1, 4), order(3, 5))
    land(landing / "west", "2.json", {"id": 3, "name": "Cyd"})
    land(landing / "east", "2.json", {"id": 3, "name": "Cyd"})


def change_rows(folder: Path) -> None:
    """Update and delete rows of the views' inputs; streams have none of them."""
    trips, customers = (DeltaTable(folder / "inputs" / name) for name in ("trips", "customers"))
    trips.update(updates={"miles": "7"}, predicate="id = 1")
    trips.delete("id = 2")
    customers.update(updates={"state": "'NY'"}, predicate="customer_id = 1")
    customers.delete("customer_id = 2")


def test_every_example_is_kept_and_none_is_computed_whole(tmp_path: Path) -> None:
    spec = project(tmp_path)
    planned = sluice("plan", "--spec", spec, "--strict")
    assert planned.exit_code == 0, planned.stderr


def test_both_runners_make_the_same_tables_after_appended_and_after_changed_rows(
    tmp_path: Path, real_spark: "SparkSession"
) -> None:
    """What the first run makes, test_against_spark.py compares; here it is only gone on from."""
    spec = project(tmp_path)
    run_by_sluice(spec, real_spark)
    for happen in (add_rows, change_rows):
        happen(tmp_path)
        run_by_spark(spec, real_spark)
        run_by_sluice(spec, real_spark)
        compared = {name: bag(rows) == bag(rows_of(spec, name)) for name, rows in tables(spec)}
        assert compared == dict.fromkeys(compared, True)
        assert len(compared) == COUNT
