"""Streaming tables: files, flows that append, flows of changes; tables that others write."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.spark_pipelines.projects import land, read_here, rows_of, sluice, write_project

FLOWS = """
    from pyspark import pipelines as dp
    from pyspark.sql import functions as F

    dp.create_streaming_table("sales", comment="Of two shops")

    for shop in ("east", "west"):
        @dp.append_flow(target="sales", name=f"sales_{shop}")
        def of_shop():
            rows = spark.readStream.schema("Id BIGINT, amount BIGINT").json(f"landing/{shop}")
            return rows.withColumn("shop", F.lit(shop))

    @dp.temporary_view
    def changes():
        schema = "cust BIGINT, name STRING, op STRING, seq BIGINT"
        return spark.readStream.schema(schema).json("landing/changes")

    dp.create_streaming_table("customers")
    dp.create_auto_cdc_flow(
        target="customers",
        source="changes",
        keys=["cust"],
        sequence_by=F.col("seq"),
        apply_as_deletes=F.expr("op = 'delete'"),
        except_column_list=["op", "seq"],
    )
"""
IN_SQL = """
    CREATE TEMPORARY VIEW `Changes_Too` AS SELECT * FROM STREAM(changes);
    CREATE STREAMING TABLE all_sales;
    CREATE FLOW of_sales COMMENT 'all' AS
    INSERT INTO all_sales BY NAME SELECT amount, id FROM STREAM(sales);
    CREATE FLOW of_changes AS
    INSERT INTO all_sales BY NAME SELECT cust AS id, 0 AS amount FROM STREAM changes;

    CREATE STREAMING TABLE customers_too;
    CREATE FLOW to_customers AS AUTO CDC INTO customers_too FROM STREAM(changes_too)
    KEYS (cust) APPLY AS DELETE WHEN op = 'delete' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)
    STORED AS SCD TYPE 1;
"""


def test_flows_append_and_changes_apply_in_the_order_of_their_sequence(tmp_path: Path) -> None:
    spec = write_project(tmp_path, flows_py=FLOWS, more_sql=IN_SQL)
    landing = tmp_path / "landing"
    land(landing / "east", "1.json", {"Id": 1, "amount": 5})
    land(landing / "west", "1.json", {"Id": 2, "amount": 7})
    change = {"cust": 1, "name": "Ann", "op": "upsert", "seq": 2}
    other = {"cust": 2, "name": "Bob", "op": "upsert", "seq": 1}
    land(landing / "changes", "1.json", change, other)
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 0, ran.output
    assert rows_of(spec, "customers") == [{"cust": 1, "name": "Ann"}, {"cust": 2, "name": "Bob"}]

    late, gone = {**change, "name": "Anna", "seq": 1}, {**other, "op": "delete", "seq": 3}
    land(landing / "changes", "2.json", late, gone, {**change, "cust": 3, "name": "Cyd"})
    land(landing / "west", "2.json", {"Id": 3, "amount": 9})
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 0, ran.output
    after = [{"cust": 1, "name": "Ann"}, {"cust": 3, "name": "Cyd"}]
    for name in ("customers", "customers_too"):
        assert sorted(rows_of(spec, name), key=lambda row: int(row["cust"])) == after
    why = sluice("why", "customers", "3", "--spec", spec)
    assert f"{landing}/changes/2.json" in why.output, why.output
    sales = sorted(tuple(row.values()) for row in rows_of(spec, "sales"))
    assert sales == [(1, 5, "east"), (2, 7, "west"), (3, 9, "west")]
    amounts = [row["amount"] for row in rows_of(spec, "all_sales")]
    assert sorted(amounts) == [0, 0, 0, 0, 0, 5, 7, 9]


def test_a_table_of_changes_has_the_key_of_its_flow_if_it_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = """
        CREATE STREAMING TABLE names;
        CREATE FLOW to_names AS AUTO CDC INTO names FROM STREAM(changes_too)
        KEYS (cust) SEQUENCE BY seq COLUMNS name STORED AS SCD TYPE 1;
        CREATE TEMPORARY VIEW pairs AS SELECT struct(cust, op) AS pair, seq FROM STREAM(changes);
        CREATE STREAMING TABLE paired;
        CREATE FLOW to_paired AS AUTO CDC INTO paired FROM STREAM(pairs)
        KEYS (pair) SEQUENCE BY seq STORED AS SCD TYPE 1;
    """
    spec = write_project(tmp_path, flows_py=FLOWS, more_sql=IN_SQL + hidden)
    views = read_here(spec, monkeypatch)["sections"]["views"]
    keys = {name: views[name].get("key") for name in sorted(views)}
    assert keys.pop("customers") == keys.pop("customers_too") == ["cust"]
    assert keys == dict.fromkeys(("all_sales", "names", "paired", "sales"))


def test_tables_that_nobody_in_the_project_defines_are_followed(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "warehouse/trips", pa.table({"Trip Id": [1, 2], "fare": [5, 9]}))
    write_deltalake(tmp_path / "outside", pa.table({"fare": [9], "name": ["high"]}))
    spec = write_project(
        tmp_path,
        a_sql=f"""
            CREATE MATERIALIZED VIEW named AS
            SELECT trips.trip_id, o.name FROM default.trips
            JOIN delta.`{tmp_path}/outside` AS o ON trips.fare = o.fare
        """,
        b_py="""
            from pyspark import pipelines as dp

            @dp.materialized_view
            def fares():
                return spark.read.format("delta").load("warehouse/trips").select("fare")
        """,
    )
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 0, ran.output
    assert rows_of(spec, "named") == [{"trip_id": 2, "name": "high"}]
    DeltaTable(tmp_path / "warehouse/trips").delete("fare = 9")
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 0, ran.output
    assert rows_of(spec, "named") == []
    assert rows_of(spec, "fares") == [{"fare": 5}]


REFUSED = """
    from pyspark import pipelines as dp

    def numbers():
        return spark.readStream.schema("id BIGINT").json("landing/numbers")

    @dp.table
    def raw():
        return numbers()

    @dp.materialized_view
    def view():
        return spark.table("raw")

    @dp.table
    def counted():
        return spark.readStream.table("raw").groupBy("id").count()

    @dp.table
    def skipping():
        return spark.readStream.option("skipChangeCommits", "true").table("view")

    @dp.table
    def beginning():
        return spark.readStream.option("startingVersion", "3").table("view")

    dp.create_streaming_table("latest")
    dp.create_auto_cdc_flow(target="latest", source="raw", keys=["id"], sequence_by="id")

    @dp.table
    def of_latest():
        return spark.readStream.option("skipChangeCommits", "true").table("latest")

    @dp.table
    def no_stream():
        return spark.table("raw")

    @dp.table
    def mixed():
        return spark.readStream.table("raw").union(spark.table("view"))

    @dp.table
    def no_schema():
        return spark.readStream.json("landing/numbers")

    @dp.table
    def rates():
        return spark.readStream.format("rate").load("x")

    def messages(**options):
        servers = {"kafka.bootstrap.servers": "a:9092", "subscribe": "t"}
        return spark.readStream.format("kafka").options(**{**servers, **options}).load()

    @dp.table
    def secret():
        return messages(**{"kafka.sasl.jaas.config": "login"})

    @dp.table
    def topics():
        return messages(subscribe="t,u")

    @dp.table
    def from_offsets():
        return messages(startingOffsets='{"t": {"0": 3}}')

    @dp.materialized_view
    def whole_files():
        return spark.read.schema("id BIGINT").json("landing/numbers")

    @dp.materialized_view
    def streamed():
        return spark.readStream.table("raw")
"""


def test_what_no_table_can_keep_is_left_out_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_here(write_project(tmp_path, a_py=REFUSED), monkeypatch)
    reasons = {what.partition(":")[0]: what for _, _, what, _ in found["left_out"]}
    for name, part in {
        "counted": "appends rows, and GROUP BY would change rows that it has",
        "of_latest": "skipChangeCommits of latest, a table kept by a flow of changes",
        "skipping": "skipChangeCommits of view, a materialized view: its commits bring new rows",
        "beginning": "the option 'startingversion' of a stream is not supported",
        "secret": "the option 'kafka.sasl.jaas.config' of a topic is not supported",
        "topics": "a stream of Kafka has one topic as `subscribe`",
        "from_offsets": 'startingOffsets \'{"t": {"0": 3}}\' is not supported',
        "no_stream": "a streaming table reads a stream",
        "mixed": "a streaming table that also reads view as a table",
        "no_schema": "has no schema",
        "rates": "the format 'rate' is not supported",
        "whole_files": "files are read as a stream, each once",
        "streamed": "a materialized view reads tables, not streams",
    }.items():
        assert part in reasons.pop(name)
    assert reasons == {}
    assert [line for _, line, *_ in found["left_out"]] == sorted(
        line for _, line, *_ in found["left_out"]
    )
    assert [*found["sections"]["views"]] == ["view", "latest"]
    assert found["sections"]["sources"]["raw"]["delivery"] == "stream"
