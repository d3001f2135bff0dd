"""Streams of tables take the rows that these get: a changed row is an error, or is skipped."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import OffsetSpec
from deltalake import DeltaTable, write_deltalake
from tests.spark_pipelines.projects import land, read_here, rows_of, sluice, write_project

from sluice.sources.kafka.client import Brokers
from sluice.sources.kafka.offsets import TopicDescription

TRIPS = """
    CREATE STREAMING TABLE trips_seen
    AS SELECT * FROM STREAM default.trips;

    CREATE STREAMING TABLE long_trips AS
    SELECT t.id AS trip
    FROM STREAM(trips) WITH ('skipChangeCommits' = 'true', maxFilesPerTrigger = 3) AS t
    WHERE t.miles > 5;
"""
LONG_IN_PYTHON = """
    from pyspark import pipelines as dp

    @dp.table
    def all_trips():
        return spark.readStream.option("skipChangeCommits", True).table("default.trips")
"""


def trips(folder: Path, *rows: tuple[int, int], mode: str = "append") -> DeltaTable:
    """Write rows into the table that the project's stream reads."""
    place = folder / "warehouse/trips"
    ids, miles = zip(*rows, strict=True)
    write_deltalake(place, pa.table({"id": [*ids], "miles": [*miles]}), mode=mode)  # type: ignore[arg-type]
    return DeltaTable(place)


def test_a_changed_row_of_a_table_that_others_write_names_the_flow_and_skipping_leaves_it_out(
    tmp_path: Path,
) -> None:
    table = trips(tmp_path, (1, 3), (2, 9))
    spec = write_project(tmp_path, a_sql=TRIPS, b_py=LONG_IN_PYTHON)
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 0, ran.output
    assert len(rows_of(spec, "trips_seen")) == 2

    table.update(updates={"miles": "7"}, predicate="id = 1")
    trips(tmp_path, (3, 8))
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 4, ran.output
    said = f"{tmp_path}/transformations/a.sql:3: shop.trips_seen reads {tmp_path}/warehouse/trips"
    assert said in ran.output
    assert "as a stream, but its version 1 changes or deletes rows" in ran.output
    assert "skipChangeCommits" in ran.output
    assert sorted(row["trip"] for row in rows_of(spec, "long_trips")) == [2, 3]
    seen = [(row["id"], row["miles"]) for row in rows_of(spec, "all_trips")]
    assert sorted(seen) == [(1, 3), (2, 9), (3, 8)]
    assert len(rows_of(spec, "trips_seen")) == 2


def test_a_changed_row_of_a_view_names_the_stream_that_reads_it(tmp_path: Path) -> None:
    tables = """
        from pyspark import pipelines as dp

        @dp.table
        def orders():
            return spark.readStream.schema("id BIGINT, cust BIGINT").json("landing/orders")
    """
    flows = """
        CREATE MATERIALIZED VIEW custs AS SELECT cust, count(*) AS n FROM orders GROUP BY cust;
        CREATE STREAMING TABLE seen AS
        SELECT cust AS c
        FROM STREAM custs;
    """
    spec = write_project(tmp_path, a_py=tables, b_sql=flows)
    land(tmp_path / "landing/orders", "1.json", {"id": 1, "cust": 1})
    assert sluice("run", "--spec", spec).exit_code == 0
    land(tmp_path / "landing/orders", "2.json", {"id": 2, "cust": 2})
    assert sluice("run", "--spec", spec).exit_code == 0
    assert sorted(row["c"] for row in rows_of(spec, "seen")) == [1, 2]

    land(tmp_path / "landing/orders", "3.json", {"id": 3, "cust": 2})
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 4, ran.output
    said = "transformations/b.sql:4: shop.custs_stream reads shop.custs as a stream, but rows of it"
    assert said in ran.output
    assert sorted(row["c"] for row in rows_of(spec, "seen")) == [1, 2]
    for options in (["--full-refresh", "seen"], []):
        ran = sluice("run", "--spec", spec, *options)
        assert ran.exit_code == 0, ran.output


AGAIN = """
    CREATE STREAMING TABLE trips_seen AS SELECT * FROM STREAM trips;
    CREATE STREAMING TABLE long_trips AS SELECT id FROM STREAM trips WHERE miles > 5;
    CREATE TEMPORARY VIEW recent AS SELECT * FROM STREAM trips WITH ('skipChangeCommits' = 'true');
    CREATE STREAMING TABLE of_recent AS SELECT id FROM recent;
    CREATE STREAMING TABLE of_seen AS SELECT id FROM STREAM trips_seen;
"""


def test_a_full_refresh_of_a_stream_reads_the_table_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Spark's runner does, which begins such a stream again."""
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))
    table = trips(tmp_path, (1, 7), (2, 9), (3, 1))
    spec = write_project(tmp_path, a_sql=AGAIN)
    assert sluice("run", "--spec", spec).exit_code == 0

    def ids(name: str) -> list[int]:
        return sorted(row["id"] for row in rows_of(spec, name))

    def refresh(*options: str) -> set[str]:
        ran = sluice("run", "--spec", spec, "--format", "json", *options)
        assert ran.exit_code == 0, ran.output
        return {json.loads(line)["table"] for line in ran.stdout.splitlines()}

    table.delete("id = 1")
    assert refresh("--full-refresh", "of_seen") == {"shop.of_seen"}
    assert ids("trips_seen") == [1, 2, 3]
    assert "shop.trips_seen" in refresh("--full-refresh", "long_trips")
    assert ids("long_trips") == [2]
    assert ids("of_recent") == [1, 2, 3]
    refresh("--full-refresh", "of_recent")
    assert ids("of_recent") == [2, 3]

    table.delete()
    refresh("--full-refresh-all")
    for name in ("trips_seen", "long_trips", "of_recent", "of_seen"):
        assert ids(name) == []
    trips(tmp_path, (4, 8))
    refresh()
    for name in ("trips_seen", "long_trips", "of_recent", "of_seen"):
        assert ids(name) == [4]


MESSAGES = """
    from pyspark import pipelines as dp
    from pyspark.sql import functions as F

    @dp.table
    def orders():
        return (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", "{servers}")
            .option("subscribe", "orders")
            .option("startingOffsets", "earliest")
            .load()
        )

    @dp.table
    def parsed():
        id = F.regexp_extract(F.col("value").cast("string"), "[0-9]+", 0).cast("int")
        return spark.readStream.table("orders").select(F.col("offset").alias("nth"), id.alias("id"))
"""


def described(brokers: Brokers) -> TopicDescription:
    """The topic as it is; those brokers describe none themselves."""
    ends = (
        brokers._offsets(brokers._admin(), [0], place)
        for place in (OffsetSpec.earliest(), OffsetSpec.latest())
    )
    return TopicDescription("cluster", "orders", "1", *ends)


def test_a_topic_is_a_streaming_table_of_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
    (broker,) = producer.list_topics(timeout=30).brokers.values()
    monkeypatch.setattr(Brokers, "describe", described)
    servers = f"{broker.host}:{broker.port}"
    spec = write_project(tmp_path, a_py=MESSAGES.format(servers=servers))
    for number in (7, 8):
        producer.produce("orders", f'{{"id": {number}}}'.encode(), b"k", partition=0)
        producer.flush()
        ran = sluice("run", "--spec", spec)
        assert ran.exit_code == 0, ran.output
    found = sorted(rows_of(spec, "orders"), key=lambda row: int(row["offset"]))
    assert [row["topic"] for row in found] == ["orders", "orders"]
    assert [*found[0]] == ["key", "value", "topic", "partition", "offset", "timestamp"]
    assert sorted((r["nth"], r["id"]) for r in rows_of(spec, "parsed")) == [(0, 7), (1, 8)]


def test_a_topic_begins_at_its_end_unless_the_option_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = MESSAGES.replace('            .option("startingOffsets", "earliest")\n', "")
    found = read_here(write_project(tmp_path, a_py=text.format(servers="a:9092")), monkeypatch)
    assert found["left_out"] == found["mistakes"] == []
    assert found["sections"]["sources"]["orders_messages"]["kafka"] == {
        "topic": "orders",
        "servers": "a:9092",
        "start": "latest",
        "isolation": "read_uncommitted",
    }
