"""What all committers promise: rows, feed, position and number, whatever the values are."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from tests.delta.tables import (
    Commit,
    Small,
    a_position,
    by_delta_rs,
    by_marking,
    by_spark,
    in_order,
    pins,
    plain,
)

from sluice.delta.log.position import positions
from sluice.delta.places.lake_layout import table_at
from sluice.errors import HistoryLost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("real_spark")

MICROSECONDS = datetime(2024, 2, 29, 23, 59, 59, 999_999, UTC)


OURS = {"delta-rs": by_delta_rs, "marking": by_marking}  # Spark's commits have Delta's own writer


@pytest.fixture(params=[*OURS.values(), by_spark], ids=[*OURS, "spark"])
def write(request: pytest.FixtureRequest, session: "SparkSession") -> Iterator[Commit]:
    yield request.param(session)
    txn = "spark.databricks.delta.write.txnVersion"
    assert session.conf.get(txn, None) is None, "the next write would be skipped"


def test_a_commit_carries_rows_feed_position_and_number(tmp_path: Path, write: Commit) -> None:
    table = Small.create(tmp_path, "id INT, v STRING", ["id"], write)
    done = table.commit(("insert", {"id": 1, "v": "a"}), ("insert", {"id": 2, "v": "b"}))
    assert (done.version, done.inserted, done.updated, done.deleted) == (1, 2, 0, 0)
    done = table.commit(
        ("update", {"id": 1, "v": "A"}),
        ("delete", {"id": 2, "v": "b"}),
        ("insert", {"id": 3, "v": "c"}),
        attempt="mine",
        kind="batch",
        definition="def",
        inputs=pins(sales=7),
        references=pins(products=3),
        frontier={"sales": 7},
        run="run 'one' \"x\"",
        horizon=MICROSECONDS,
    )
    assert (done.version, done.inserted, done.updated, done.deleted) == (2, 1, 1, 1)
    assert table.rows() == [{"id": 1, "v": "A"}, {"id": 3, "v": "c"}]
    assert table.feed(2) == [
        ("delete", {"id": 2, "v": "b"}),
        ("insert", {"id": 3, "v": "c"}),
        ("update_postimage", {"id": 1, "v": "A"}),
        ("update_preimage", {"id": 1, "v": "a"}),
    ]
    head = table.head
    assert head.position == a_position(
        2,
        attempt="mine",
        definition="def",
        inputs=pins(sales=7),
        references=pins(products=3),
        frontier={"sales": 7},
        run="run 'one' \"x\"",
        horizon=MICROSECONDS,
        after=1,
    )
    assert (head.version, head.data_version, head.last_txn, head.next_batch) == (2, 2, 2, 3)


def test_batches_are_numbered_on_through_either_kind_of_commit(
    tmp_path: Path, write: Commit
) -> None:
    table = Small.create(tmp_path, "id INT", ["id"], write)
    table.commit(("insert", {"id": 1}))
    table.position_only()
    table.commit(("delete", {"id": 1}))
    table.position_only()
    assert [(v, p.batch) for v, p in positions(table.uri)] == [
        (4, 4),
        (3, 3),
        (2, 2),
        (1, 1),
        (0, 0),
    ]
    assert table.head.last_txn == 4


def test_rows_of_the_changelog_are_the_only_ones_in_the_feed(tmp_path: Path, write: Commit) -> None:
    table = Small.create(tmp_path, "id INT, v INT", ["id"], write)
    table.commit(*[("insert", {"id": i, "v": i}) for i in range(50)])
    table.commit(("update", {"id": 7, "v": -7}), ("delete", {"id": 8, "v": 8}))
    assert table.feed(2) == [
        ("delete", {"id": 8, "v": 8}),
        ("update_postimage", {"id": 7, "v": -7}),
        ("update_preimage", {"id": 7, "v": 7}),
    ]
    assert len(table.rows()) == 49


def test_a_null_key_names_one_row(tmp_path: Path, write: Commit) -> None:
    table = Small.create(tmp_path, "a STRING, b INT, v INT", ["a", "b"], write)
    keys = [(None, None), (None, 1), ("x", None), ("x", 1), ("", 1)]
    table.commit(*[("insert", {"a": a, "b": b, "v": 0}) for a, b in keys])
    table.commit(
        ("update", {"a": None, "b": None, "v": 1}),
        ("update", {"a": "", "b": 1, "v": 2}),
        ("delete", {"a": None, "b": 1, "v": 0}),
    )
    assert {(r["a"], r["b"]): r["v"] for r in table.rows()} == {
        (None, None): 1,
        ("x", None): 0,
        ("x", 1): 0,
        ("", 1): 2,
    }


VALUES: dict[str, tuple[str, list[Any]]] = {
    "decimal of 38 digits": (
        "DECIMAL(38,0)",
        [Decimal(10**38 - 1), Decimal(10**38 - 2), Decimal(1 - 10**38), Decimal(0)],
    ),
    "decimal of money": (
        "DECIMAL(22,2)",
        [Decimal("12345678901234567890.12"), Decimal("12345678901234567890.13"), Decimal("-0.01")],
    ),
    "timestamp": (
        "TIMESTAMP",
        [MICROSECONDS, MICROSECONDS.replace(microsecond=999_998), datetime(1, 1, 1, tzinfo=UTC)],
    ),
    "date": ("DATE", [date(1, 1, 1), date(1582, 10, 15), date(9999, 12, 31)]),
    "double": ("DOUBLE", [float("nan"), 0.0, float("inf"), float("-inf"), 5e-324]),
    "text": ("STRING", ["", " ", "o'clock", 'a "b" `c`', "\\", "%_${x}", "é\u0000\n☃", "x" * 200]),
    "binary": ("BINARY", [b"", b"\x00\xff", b"'"]),
    "boolean": ("BOOLEAN", [True, False]),
    "long": ("BIGINT", [2**63 - 1, -(2**63), 2**53 + 1, 2**53]),
}


def test_a_key_of_any_type_finds_exactly_its_row(tmp_path: Path, write: Commit) -> None:
    """Each row differs from the first in one column of the key, so that this one must tell them."""
    key = [f"k{n}" for n, _ in enumerate(VALUES)]
    types = ", ".join(f"{k} {type_}" for k, (type_, _) in zip(key, VALUES.values(), strict=True))
    table = Small.create(tmp_path, f"{types}, v INT", key, write)
    first = {k: values[0] for k, (_, values) in zip(key, VALUES.values(), strict=True)}
    keys = [first, dict.fromkeys(key)]
    for k, (_, values) in zip(key, VALUES.values(), strict=True):
        keys += [{**first, k: value} for value in (*values[1:], None)]
    table.commit(*[("insert", {**k, "v": 0}) for k in keys])
    without_nulls = [k for k in keys if None not in k.values()]
    table.commit(*[("update", {**k, "v": n}) for n, k in enumerate(without_nulls, start=1)])
    expected = [{**k, "v": n} for n, k in enumerate(without_nulls, start=1)]
    expected += [{**k, "v": 0} for k in keys if k not in without_nulls]
    assert plain(table.rows()) == plain(in_order(expected))
    table.commit(*[("delete", row) for row in expected])
    assert table.rows() == []


def test_nested_values_and_odd_numbers_come_back_as_they_were(
    tmp_path: Path, write: Commit
) -> None:
    columns = (
        "id INT, items ARRAY<STRUCT<name: STRING, price: DECIMAL(38,10), at: TIMESTAMP>>, "
        "counts MAP<STRING, BIGINT>, place STRUCT<x: DOUBLE, deep: STRUCT<y: ARRAY<INT>>>, z DOUBLE"
    )
    rows = [
        {
            "id": 1,
            "items": [
                {"name": "", "price": Decimal("1.0000000001"), "at": MICROSECONDS},
                {"name": None, "price": None, "at": None},
                None,
            ],
            "counts": [("a", 1), ("", None)],
            "place": {"x": float("nan"), "deep": {"y": [1, None]}},
            "z": -0.0,
        },
        {"id": 2, "items": [], "counts": [], "place": {"x": None, "deep": None}, "z": None},
        {"id": 3, "items": None, "counts": None, "place": None, "z": float("nan")},
    ]
    table = Small.create(tmp_path, columns, ["id"], write)
    table.commit(("insert", rows[0]), ("insert", {**rows[1], "id": 3}))
    table.commit(("insert", rows[1]), ("update", rows[2]))
    assert plain(table.rows()) == plain(rows)
    assert plain(table.feed(2)[1:]) == plain(
        [("update_postimage", rows[2]), ("update_preimage", {**rows[1], "id": 3})]
    )


def test_a_partitioned_table_takes_every_kind_of_commit(tmp_path: Path, write: Commit) -> None:
    columns = "day DATE, id INT, v STRING"
    table = Small.create(tmp_path, columns, ["day", "id"], write, partition_by=["day"])
    monday, tuesday = date(2024, 1, 1), date(2024, 1, 2)
    table.commit(
        ("insert", {"day": monday, "id": 1, "v": "a"}),
        ("insert", {"day": tuesday, "id": 1, "v": "b"}),
        ("insert", {"day": None, "id": 1, "v": "c"}),
    )
    table.position_only()
    table.commit(
        ("update", {"day": None, "id": 1, "v": "C"}),
        ("delete", {"day": monday, "id": 1, "v": "a"}),
    )
    assert {(r["day"], r["v"]) for r in table.rows()} == {(tuesday, "b"), (None, "C")}
    assert [kind for kind, _ in table.feed(3)] == ["delete", "update_postimage", "update_preimage"]
    assert DeltaTable(table.uri).metadata().partition_columns == ["day"]


def test_a_changelog_that_does_not_fit_its_table_is_loud(tmp_path: Path, write: Commit) -> None:
    table = Small.create(tmp_path, "id INT, v INT", ["id"], write)
    table.commit(("insert", {"id": 1, "v": 1}))
    with pytest.raises(HistoryLost, match="did not hold the rows") as raised:
        table.commit(("update", {"id": 2, "v": 2}))
    assert f"`sluice rebuild {table_at(table.uri)}`" in raised.value.hint


@pytest.mark.parametrize("write", OURS.values(), ids=OURS, indirect=True)
def test_statistics_never_make_spark_skip_a_wanted_row(
    tmp_path: Path, write: Commit, session: "SparkSession"
) -> None:
    columns = {f"k{n}": type_ for n, (type_, _) in enumerate(VALUES.values())}
    struct = ", ".join(f"{k}: {type_}" for k, type_ in columns.items())
    flat = ", ".join(f"{k} {type_}" for k, type_ in columns.items())
    table = Small.create(tmp_path, f"id INT, {flat}, s STRUCT<{struct}>", ["id"], write)
    most = max(len(values) for _, values in VALUES.values()) + 1
    by_column = [
        (k, type_, values) for k, (type_, values) in zip(columns, VALUES.values(), strict=True)
    ]
    nth = [{k: (*values, *[None] * most)[n] for k, _, values in by_column} for n in range(most)]
    rows = [("insert", {"id": n, **row, "s": row}) for n, row in enumerate(nth)]
    for half in (rows[::2], rows[1::2]):  # two files: a wanted row is in one of them
        table.commit(*half)
    read = session.read.format("delta").load(table.uri)
    for k, type_, values in by_column:
        greatest = max(range(len(values)), key=lambda n: order_in_spark(values[n]))
        both = (F.col(k), F.col(f"s.{k}"))  # no statistics of either may hide the row
        where: dict[Any, list[Column]] = {
            n: [c == literal(value, type_) for c in both] for n, value in enumerate(values)
        }
        where["greatest"] = [c >= literal(values[greatest], type_) for c in both]
        where["null"] = [c.isNull() for c in both]
        found = [
            read.where(a & b).select(F.lit(f"{n}").alias("of"), "id") for n, (a, b) in where.items()
        ]
        wanted = [*[(f"{n}", n) for n in range(len(values))], ("greatest", greatest)]
        wanted += [("null", n) for n in range(len(values), most)]
        assert sorted(map(tuple, reduce(DataFrame.union, found).collect())) == sorted(wanted), k


def literal(value: Any, type_: str) -> Column:
    """A literal by its text where Python's values end before Spark's."""
    return F.lit(value.isoformat() if isinstance(value, date) else value).cast(type_)


def order_in_spark(value: Any) -> tuple[bool, Any]:
    return (value != value, value)  # noqa: PLR0124 -- NaN is the greatest
