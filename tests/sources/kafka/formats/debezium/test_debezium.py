"""Changes as Debezium sends them end in the tables that they were captured from."""

import base64
import json
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from tests.sources.kafka.conftest import Topical
from tests.support.lake import HEAD, counted

from sluice.operate.run import run
from sluice.sources.kafka.debezium import VALUES, ConnectType, Envelope, debezium
from sluice.sources.kafka.json import meanings_of
from sluice.sources.kafka.records import Message, Unusable

Made = Callable[..., Topical]
Row = dict[str, Any]


def change(op: str, before: Row | None = None, after: Row | None = None) -> Row:
    source = {"db": "shop", "table": "orders", "lsn": 1}
    return {"op": op, "before": before, "after": after, "source": source, "ts_ms": 1}


def test_a_key_lives_from_its_snapshot_to_its_delete(topical: Made) -> None:
    lake = topical(format_="debezium-json", extra="key: [id]")
    lake.send(
        ({"id": 1}, change("r", after={"id": 1, "v": 1})),
        ({"id": 2}, change("c", after={"id": 2, "v": 2})),
        ({"id": 1}, change("u", after={"id": 1, "v": 9})),
        ({"id": 2}, change("d", before={"id": 2, "v": None})),
        ({"id": 2}, None),
        (None, change("m")),
    )
    (deliveries, _) = lake.take()
    assert (deliveries.rows_in, deliveries.quarantined) == (4, 0)
    assert lake.values() == [{"id": 1, "v": 9}]
    lake.send(({"id": 2}, change("c", after={"id": 2, "v": 5})), ({"id": 1}, change("d")))
    lake.take()
    assert lake.values() == [{"id": 2, "v": 5}]


def test_without_a_key_the_rows_before_are_taken_away(topical: Made) -> None:
    lake = topical(format_="debezium-json")
    one, two = {"id": 1, "v": 1}, {"id": 1, "v": 2}
    lake.send(change("c", after=one), change("c", after=one), change("u", before=one, after=two))
    lake.take()
    assert counted(map(repr, lake.values())) == counted(map(repr, [one, two]))
    lake.send(change("d", before=one), change("d"), ({"shop": 1, "id": 1}, change("u", after=two)))
    lake.take()
    assert lake.values() == [two]
    (with_key, without) = (q["reason"] for q in lake.quarantine())
    assert "give the source `key: [shop, id]`, or have the connector send it" in with_key
    assert "give the source a `key`, or" in without
    assert "REPLICA IDENTITY FULL" in without


def test_values_are_read_by_the_schema_beside_them(topical: Made) -> None:
    fields = [
        {"field": "id", "type": "int64"},
        {
            "field": "amount",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2"},
        },
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        {"field": "ms", "type": "int64", "name": "io.debezium.time.Timestamp"},
        {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "z", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        {"field": "free", "type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
    ]
    row = {
        "id": 7,
        "amount": base64.b64encode((-1234).to_bytes(2, "big", signed=True)).decode(),
        "at": 1_714_557_600_123_456,
        "ms": 1_714_557_600_123,
        "day": 19_844,
        "z": "2024-05-01T12:00:00+02:00",
        "free": {"scale": 3, "value": base64.b64encode(b"\x04\xd2").decode()},
    }
    schema = {"type": "struct", "fields": [{"field": "after", "fields": fields}]}
    lake = topical(
        "id BIGINT, amount DECIMAL(12,2), at TIMESTAMP, ms TIMESTAMP, day DATE, z TIMESTAMP, "
        "free DECIMAL(20,6)",
        format_="debezium-json",
        extra="key: [id]",
    )
    lake.send({"schema": schema, "payload": change("c", after=row)})
    lake.take()
    (found,) = lake.values()
    assert (found["id"], str(found["amount"]), str(found["day"])) == (7, "-12.34", "2024-05-01")
    assert found["at"].isoformat() == "2024-05-01T10:00:00.123456+00:00"
    assert found["ms"].isoformat() == "2024-05-01T10:00:00.123000+00:00"
    assert found["z"].isoformat() == "2024-05-01T10:00:00+00:00"
    assert str(found["free"]) == "1.234000"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("org.apache.kafka.connect.data.Decimal", lambda digits: digits),
        ("io.debezium.data.VariableScaleDecimal", lambda digits: {"scale": 2, "value": digits}),
    ],
)
@pytest.mark.parametrize("number", [-(10**36) + 1, 0, 7, 10**38 - 1])
def test_decimals_keep_all_digits(name: str, value: Callable[[bytes], Any], number: int) -> None:
    digits = number.to_bytes(17, "big", signed=True)
    read = Decimal(VALUES[name](value(digits), {"scale": "2"}))
    assert read.as_tuple().exponent == -2
    assert int(str(read).replace(".", "")) == number


@pytest.mark.parametrize("scale", [10**9, -(10**9), "x", None])
def test_a_scale_that_no_decimal_has_is_refused(scale: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        VALUES["io.debezium.data.VariableScaleDecimal"]({"scale": scale, "value": b"\1"}, {})


def test_a_number_longer_than_any_decimal_is_refused_at_once() -> None:
    meaning = ConnectType("org.apache.kafka.connect.data.Decimal", {"scale": "0"})
    row = {"amount": b"\1" * 700_000}
    envelope = Envelope({"op": "c", "after": row}, {"amount": meaning})
    with pytest.raises(Unusable, match="is not a valid org"):
        list(debezium(lambda _: envelope, lambda _: None, ()).one(Message(0, 0, 0, None, b"x")))


@pytest.mark.parametrize(
    "schema",
    [
        "text",
        ["list"],
        {"fields": "text"},
        {"fields": 7},
        {"fields": ["text"]},
        {"fields": [{"name": "x"}]},
        {"fields": [{"field": "after", "fields": 7}]},
        {"fields": [{"field": {}, "name": "x"}]},
        {"fields": [{"field": "after", "fields": [{"field": "id", "name": {}}]}]},
        {"fields": [{"field": "after", "fields": [{"field": "id", "parameters": 7}]}]},
    ],
)
def test_a_schema_that_is_none_is_refused(schema: Any) -> None:
    with pytest.raises(Unusable, match="none of Connect's"):
        meanings_of(schema, "after")


@pytest.mark.parametrize("schema", [None, {}, {"fields": None}, {"fields": []}])
def test_no_schema_gives_no_meanings(schema: Any) -> None:
    assert meanings_of(schema, "after") == {}


def test_any_history_ends_in_the_table_that_it_was_captured_from(topical: Made) -> None:
    chance, table = random.Random(7), dict[int, Row]()
    lake = topical(format_="debezium-json", extra="key: [id]", bounds=", max_rows: 17")
    for _ in range(3):
        sent = []
        for _ in range(40):
            key = chance.randrange(8)
            before, after = table.get(key), {"id": key, "v": chance.randrange(100)}
            if before and chance.random() < 0.3:
                del table[key]
                sent += [({"id": key}, change("d", before=before)), ({"id": key}, None)]
            else:
                table[key] = after
                sent.append(({"id": key}, change("u" if before else "c", before, after)))
        lake.send(*sent)
        lake.take()
        assert lake.values() == sorted(table.values(), key=repr)


def test_an_envelope_that_says_nothing_is_quarantined(topical: Made) -> None:
    lake = topical(format_="debezium-json", extra="key: [id]")
    odd = {"schema": "text", "payload": change("c", after={"id": 1, "v": 1})}
    lake.send({"id": 1}, change("t"), change("c"), json.dumps([1]).encode(), odd)
    lake.take()
    assert [q["reason"] for q in lake.quarantine()] == [
        "op None is none of c, r, u, d",
        "op c without the row after it",
        "op t is none of c, r, u, d",
        "the message is not an object",
        "the message's `schema` is none of Connect's",
    ]


JOINED = """
  orders:
    kafka: {topic: %s, connection: shop_kafka}
    value: {format: json}
    schema: "op STRING, after STRUCT<id: INT, v: INT>"
views:
  history:
    kind: join
    left: {table: orders, as: change}
    right: {table: events, as: now}
    on: [change.after.id = now.id]
    select: {id: now.id, was: change.after.v, is_now: now.v}
"""


def test_one_topic_may_feed_facts_and_their_reference_data(topical: Made) -> None:
    lake = topical(format_="debezium-json", extra="key: [id]")
    lake.declare(HEAD + lake.declared + JOINED % lake.topic)
    sent = [change("c", after={"id": 1, "v": 1}), change("u", after={"id": 1, "v": 5})]
    for values, expected in (
        ((*sent,), {1: 5, 5: 5}),
        ((change("u", after={"id": 1, "v": 7}),), {1: 7, 5: 7, 7: 7}),
    ):
        lake.send(*values)
        run(lake.spark, lake.project, lake.project.pipelines["shop"], [])
        assert {row["was"]: row["is_now"] for row in lake.rows("history")} == expected
