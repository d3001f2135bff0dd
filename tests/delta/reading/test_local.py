"""Small tables and feeds read without a Spark job equal what Spark itself reads."""

import shutil
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from tests.delta.tables import (
    ADDED,
    ID_AND_V,
    Row,
    Small,
    by_delta_rs,
    by_spark,
    for_small_batches,
    in_order,
    plain,
)

from sluice.delta.reading import spark_reads as delta
from sluice.delta.reading.local import local_feed, local_snapshot
from sluice.delta.reading.local import to_spark_types as one_piece
from sluice.delta.writing import merge
from sluice.errors import HistoryLost, UsageError
from sluice.interpreter.local_session import Session, interpreting
from sluice.limits import Limits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = """
    id BIGINT, flag BOOLEAN, tiny TINYINT, small SMALLINT, whole INT, part FLOAT, number DOUBLE,
    money DECIMAL(12,2), huge DECIMAL(38,0), word STRING, raw BINARY, day DATE, at TIMESTAMP,
    wall TIMESTAMP_NTZ, words ARRAY<STRING>,
    lines ARRAY<STRUCT<item: STRING, price: DECIMAL(20,4), at: TIMESTAMP>>,
    counts MAP<STRING, BIGINT>, prices MAP<INT, STRUCT<p: DECIMAL(38,18)>>,
    place STRUCT<x: DOUBLE, deep: STRUCT<days: ARRAY<DATE>, raw: BINARY>>
"""


def a_row(id_: int, **other: Any) -> Row:
    base = {
        "id": id_,
        "flag": True,
        "tiny": -128,
        "small": 32767,
        "whole": -(2**31),
        "part": 0.1,
        "number": 5e-324,
        "money": Decimal("-9999999999.99"),
        "huge": Decimal(10**38 - 1 - id_),
        "word": "é ☃ \u0000 'q' \"d\"",
        "raw": b"\x00\xff",
        "day": date(1, 1, 1),
        "at": datetime(1, 1, 1, 0, 0, 0, 1, UTC),
        "wall": datetime(1, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001
        "words": ["", None, "a"],
        "lines": [
            {
                "item": "x",
                "price": Decimal("1.0001"),
                "at": datetime(1900, 1, 1, 0, 0, 1, tzinfo=UTC),
            },
            None,
            {"item": None, "price": None, "at": None},
        ],
        "counts": [("a", 1), ("b", None)],
        "prices": [(1, {"p": Decimal("0.000000000000000001")}), (2, None)],
        "place": {"x": float("nan"), "deep": {"days": [date(9999, 12, 31), None], "raw": b""}},
    }
    return {**base, **other}


LATE = {
    "at": datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
    "wall": datetime(9999, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
    "day": date(9999, 12, 31),
}
ODD = {"number": -0.0, "part": float("-inf"), "words": [], "lines": [], "counts": [], "prices": []}
EMPTY = dict.fromkeys(a_row(0))


@pytest.fixture(scope="module", params=[by_delta_rs, by_spark], ids=["delta-rs", "spark"])
def table(
    request: pytest.FixtureRequest,
    real_spark: "SparkSession",
    tmp_path_factory: pytest.TempPathFactory,
) -> Small:
    """Appended, merged, compacted, with commits that hold no rows. The tests only read it."""
    session = for_small_batches(real_spark)
    folder, often = tmp_path_factory.mktemp("local"), {"delta.checkpointInterval": "3"}
    small = Small.create(folder, COLUMNS, ["id"], request.param(session), properties=often)
    small.commit(*[("insert", a_row(i)) for i in range(3)], ("insert", {**EMPTY, "id": 3}))
    small.position_only()
    small.commit(("insert", a_row(4, **LATE)), ("update", a_row(1, **ODD)), ("delete", a_row(2)))
    session.sql(f"OPTIMIZE delta.`{small.uri}`")
    small.commit(("insert", a_row(5, **ODD)))
    small.commit(("delete", a_row(5, **ODD)), ("delete", a_row(0)))
    small.position_only()
    return small


@pytest.mark.usefixtures("real_spark")
def test_a_snapshot_at_every_version_is_sparks(table: Small, session: "SparkSession") -> None:
    assert (Path(table.uri) / "_delta_log" / "_last_checkpoint").exists()
    for version in sorted(table.versions()):
        spark = session.read.format("delta").option("versionAsOf", version).load(table.uri)
        same(local_snapshot(session, table.uri, version), spark)


@pytest.mark.usefixtures("real_spark")
def test_the_feed_of_every_range_is_sparks(table: Small, session: "SparkSession") -> None:
    head = max(table.versions())
    ranges = [(v, v + 1) for v in range(head)] + [(0, head), (1, 5), (3, head)]
    for after, upto in ranges:
        same(local_feed(session, table.uri, after, upto), spark_feed(session, table, after, upto))


@pytest.mark.usefixtures("real_spark")
def test_an_empty_table_has_no_rows_and_no_feed(session: "SparkSession", tmp_path: Path) -> None:
    table = Small.create(tmp_path, COLUMNS, ["id"], by_delta_rs(session))
    table.position_only()
    spark = session.read.format("delta").load(table.uri)
    same(local_snapshot(session, table.uri, 1), spark)
    same(local_feed(session, table.uri, 0, 1), spark_feed(session, table, 0, 1))


def test_a_version_whose_number_came_again_is_read_again(
    session: "SparkSession", tmp_path: Path
) -> None:
    table = Small.create(tmp_path, ID_AND_V, ["id"], by_delta_rs(session))
    backup = shutil.copytree(table.uri, tmp_path / "backup")
    found = []
    for v in "ab":
        table.commit(("insert", {"id": 1, "v": v}))
        found += [row.v for row in local_snapshot(session, table.uri, 1).collect()]
        shutil.rmtree(table.uri)
        shutil.copytree(backup, table.uri)
    assert found == ["a", "b"]


def test_spark_replaces_no_rows_in_a_store_that_it_can_not_commit_to(
    spark: "SparkSession",
) -> None:
    with pytest.raises(UsageError, match="Spark must not commit to gs://bucket/t"):
        merge.replace_where("gs://bucket/t", spark.range(1), "true")


def test_only_the_wanted_columns_of_a_larger_table_are_read(tmp_path: Path) -> None:
    """Each column read counts as memory of the session."""
    with interpreting(Session()) as session:
        table = Small.create(tmp_path, ID_AND_V, ["id"], by_delta_rs(session))
        table.commit(*[("insert", {"id": i, "v": "x" * 100}) for i in range(10)])
        taken = []
        for columns in (["id"], []):
            before = session.service.plans.budget.taken
            large = delta.snapshot(session, table.uri, 1, Limits(read_here_bytes=0), columns)
            assert large.columns == (columns or ["id", "v"])
            assert [row.id for row in large.sort("id").collect()] == list(range(10))
            taken.append(session.service.plans.budget.taken - before)
        assert taken[0] < 200
        assert taken[1] > 1_000


@pytest.mark.usefixtures("real_spark")
def test_a_partitioned_table_is_read_the_same(session: "SparkSession", tmp_path: Path) -> None:
    columns = "day DATE, at TIMESTAMP, word STRING, n BIGINT"
    parts = ["day", "at", "word"]
    for name, write in {"a": by_delta_rs(session), "b": by_spark(session)}.items():
        folder = tmp_path / name
        table = Small.create(folder, columns, ["n"], write, partition_by=parts)
        rows = [
            {"day": date(2024, 1, 1), "at": LATE["at"], "word": "a b/c=d%20é'\"", "n": 1},
            {"day": None, "at": None, "word": None, "n": 2},
            {
                "day": date(1, 1, 1),
                "at": datetime(2024, 1, 1, 0, 0, 0, 1, UTC),
                "word": " ",
                "n": 3,
            },
        ]
        table.commit(*[("insert", row) for row in rows])
        table.commit(("delete", rows[0]), ("update", {**rows[2], "day": date(2024, 1, 2)}))
        for version in (1, 2):
            spark = session.read.format("delta").option("versionAsOf", version).load(table.uri)
            same(local_snapshot(session, table.uri, version), spark)


@pytest.mark.usefixtures("real_spark")
def test_the_feed_of_a_table_partitioned_by_days_is_read_the_same(
    session: "SparkSession", tmp_path: Path
) -> None:
    for name, write in {"a": by_delta_rs(session), "b": by_spark(session)}.items():
        columns = "day DATE, hour INT, n BIGINT"
        table = Small.create(tmp_path / name, columns, ["n"], write, partition_by=["day", "hour"])
        rows = [
            {"day": date(2024, 1, 1), "hour": -1, "n": 1},
            {"day": None, "hour": None, "n": 2},
            {"day": date(1, 1, 1), "hour": 0, "n": 3},
        ]
        table.commit(*[("insert", row) for row in rows])
        table.commit(("delete", rows[0]), ("update", {**rows[1], "hour": 7}))
        same(local_feed(session, table.uri, 0, 2), spark_feed(session, table, 0, 2))


@pytest.mark.usefixtures("real_spark")
def test_the_whole_feed_folds_to_the_table(table: Small, session: "SparkSession") -> None:
    head = max(table.versions())
    rows = local_feed(session, table.uri, 0, head).select("id", *ADDED[:2])
    feed = [r.asDict() for r in rows.collect()]
    kept: dict[int, Row] = {}
    for change in sorted(feed, key=lambda r: (r["_commit_version"], "delete" not in r[ADDED[0]])):
        if change["_change_type"] in ("insert", "update_postimage"):
            kept[change["id"]] = change
        elif change["_change_type"] == "delete":
            del kept[change["id"]]
    assert sorted(kept) == sorted(row["id"] for row in table.rows())


@pytest.mark.usefixtures("real_spark")
def test_a_table_vacuumed_by_spark_names_what_is_lost(
    session: "SparkSession", tmp_path: Path
) -> None:
    table = Small.create(tmp_path, "id INT, v INT", ["id"], by_delta_rs(session))
    table.commit(("insert", {"id": 1, "v": 1}))
    table.commit(("update", {"id": 1, "v": 2}))
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    session.sql(f"VACUUM delta.`{table.uri}` RETAIN 0 HOURS")
    with pytest.raises(HistoryLost, match="can't be read any more"):
        delta.check_feed(table.uri, "sales", "top_products", 0, 2)
    head = table.head
    assert head.position is not None
    assert (head.data_version, head.next_batch) == (2, 3)
    table.commit(("delete", {"id": 1, "v": 2}))
    assert table.rows() == []


def spark_feed(session: "SparkSession", table: Small, after: int, upto: int) -> "DataFrame":
    reader = session.read.format("delta").option("readChangeFeed", "true")
    return reader.option("startingVersion", after + 1).option("endingVersion", upto).load(table.uri)


def same(local: "DataFrame", spark: "DataFrame") -> None:
    """Equal as Spark sees it: same types, and every value to the last digit and microsecond."""
    assert types(local) == types(spark)
    assert exact(local) == exact(spark)


def types(rows: "DataFrame") -> dict[str, str]:
    return {f.name: f.dataType.simpleString() for f in rows.schema.fields}


def exact(rows: "DataFrame") -> Sequence[Row]:
    """Rows as text that loses nothing; Python's own times end before Delta's do."""
    columns = [c for c in rows.columns if c != "_commit_timestamp"]
    texts = [_text(c, rows.schema[c].dataType.simpleString()) for c in columns]
    return in_order([plain(r.asDict(recursive=True)) for r in rows.select(*texts).collect()])


def _text(column: str, type_: str) -> Any:
    named = F.col(f"`{column}`")
    if type_ in ("timestamp", "timestamp_ntz"):
        return F.date_format(named, "yyyy-MM-dd HH:mm:ss.SSSSSS").alias(column)
    return named if type_ in ("binary", "double", "float") else named.cast("string").alias(column)


def test_rows_behind_empty_pieces_are_not_lost(session: "SparkSession") -> None:
    one = pa.table({"id": pa.array([1, 2])})
    pieces = pa.concat_tables([one.slice(0, 0), one.slice(0, 1), *[one.slice(0, 0)] * 3, one])
    assert [b.num_rows for b in pieces.to_batches()] == [0, 1, 0, 0, 0, 2]
    assert session.createDataFrame(one_piece(pieces)).count() == 3
