"""Batches that are decoded whole give the rows that their messages give one by one."""

import gc
import io
import json
from random import Random

import pyarrow as pa
import pytest
from confluent_kafka import Message as Event
from fastavro import parse_schema, schemaless_writer
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType
from tests.sources.kafka.decoding.checks import RECORD, check, read, rows
from tests.sources.kafka.decoding.odd import ODD

from sluice.interpreter.local_session import Session, interpreting
from sluice.sources.kafka import rows as message_rows
from sluice.sources.kafka.avro import columns_of_record, plain_record, read_record
from sluice.sources.kafka.json import columns_of_json
from sluice.sources.kafka.records import (
    Message,
    arrange_events,
    arrange_messages,
    each_message,
)
from sluice.sources.kafka.rows import AT, KEY, LEFT_OUT, VALUE, kept_as_sql, message_of
from sluice.sources.topic import TopicFeed

__all__ = ["read"]

JSONS: dict[str, tuple[str, ...]] = {
    "id": ("1", "-7", "9223372036854775807", "-0"),
    "i": ("5", "2147483647", "null"),
    "m": ("12.50", "7", "-0.5"),
    "d": ("1.5", "-0.0", "3"),
    "b": ("true", "false", "null"),
    "s": ('"x"', '""', '"é\\n\\u0041"', "null"),
    "at": ('"2024-05-01 10:00:00"', '"2024-05-01T10:00:00.5Z"'),
    "day": ('"2024-05-01"', "null"),
    "more": ('{"a": [1, 2], "b": "c:d"}', "null"),
}
ODDS = (
    *("1e2", "1.005", '"12.5"', '"x"', "9223372036854775808", '"2024-02-30"', "{}", "[1]", "NaN"),
    '{"a": [1, {"b": "c:d"}]}',
    *("2147483648", "true", "0.1234567890123456789", "123456789.5", '"\\ud800"', '"\\u0000"'),
)
SEEDS = range(40)


def as_json(random: Random, odd: float) -> bytes:
    names = [name for name in JSONS if random.random() < 0.9]
    parts = [f'"{n}": {random.choice(ODDS if random.random() < odd else JSONS[n])}' for n in names]
    if random.random() < odd / 4:
        parts.append(random.choice(parts or ['"id": 1']))
    if random.random() < odd / 4:
        return random.choice(ODD[:-6]).encode()
    return ("{" + ", ".join(parts) + "}").encode()


@pytest.mark.parametrize("read", ["json"], indirect=True)
@pytest.mark.parametrize("seed", SEEDS)
def test_json_by_chance(read: TopicFeed, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr(message_rows, "AT_ONCE", random.choice((2, 5, 50)))
    odd = random.choice((0, 0.005, 0.02, 0.2))
    check(read, [as_json(random, odd) for _ in range(30)])


@pytest.mark.parametrize("read", ["json"], indirect=True)
def test_plain_json_is_read_by_columns(read: TopicFeed) -> None:
    values = [as_json(Random(n), 0) for n in range(20)]
    types = {name: field.dataType for name, field in _types(read).items()}
    assert columns_of_json(values, types)


def _types(read: TopicFeed) -> dict[str, StructField]:
    session = Session()
    with interpreting(session):
        schema = session.createDataFrame([], "id BIGINT, m DECIMAL(8,2), d DOUBLE, s STRING").schema
    return {field.name: field for field in schema.fields}


def as_avro(random: Random, odd: float) -> bytes:
    row = {
        "id": random.choice((0, -1, 2**63 - 1)),
        "i": random.choice((5, -(2**31))),
        "m": random.choice(("12.50", "x")),
        "d": random.choice((None, 1.5, -0.0)),
        "b": random.random() < 0.5,
        "s": random.choice((None, "", "é😀")),
        "more": b"\xff",
        "at": "2024-05-01 10:00:00",
        "day": random.choice((None, "2024-05-01")),
        "said": "x",
    }
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(RECORD), row)
    data = bytearray(out.getvalue())
    if random.random() < odd:
        at = random.randrange(len(data))
        kind = random.randrange(3)
        if kind == 0:
            data[at] = random.choice((0, 1, 2, 3, 4, 127, 128, 255, random.randrange(256)))
        elif kind == 1:
            del data[at]
        else:
            data[at:at] = bytes([random.choice((1, 128, 255))]) * random.choice((1, 9, 10, 11))
    return b"\0\0\0\0\1" + bytes(data)


@pytest.mark.parametrize("read", ["avro"], indirect=True)
@pytest.mark.parametrize("seed", SEEDS)
def test_avro_by_chance(read: TopicFeed, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr(message_rows, "AT_ONCE", random.choice((2, 5, 50)))
    odd = random.choice((0, 0.05, 0.5))
    check(read, [as_avro(random, odd) for _ in range(30)])


def test_plain_avro_is_read_by_columns_and_other_records_are_not() -> None:
    record = plain_record(parse_schema(RECORD), {})
    types = {"id": LongType(), "d": DoubleType(), "s": StringType(), "lacking": StringType()}
    assert record
    assert columns_of_record(record, [as_avro(Random(n), 0) for n in range(20)], types)
    assert columns_of_record(record, [b"\0\0\0\0\1"], types) is None
    assert columns_of_record(record, [as_avro(Random(1), 0)], {"more": StringType()}) is None
    nested = {"type": "record", "name": "N", "fields": [{"name": "r", "type": RECORD}]}
    record = plain_record(parse_schema(nested), {})
    assert record
    assert columns_of_record(record, [as_avro(Random(1), 0)], {"r": StringType()}) is None


def test_one_number_of_more_than_64_bits_is_enough_for_doubt() -> None:
    head, ones = b"\0\0\0\0\1", b"\xff" * 9
    least, zero, longer = (head + one for one in (ones + b"\1", b"\0", ones + b"\2"))
    found = read_record({"id": "long"}, [zero, least, least])
    assert found
    assert found["id"].to_pylist() == [0, -(2**63), -(2**63)]
    for values in ([longer], [least, longer], [zero, longer, least], [head + ones + b"\x81\0"]):
        assert read_record({"id": "long"}, values) is None


def test_a_message_is_kept_whole() -> None:
    messages = [
        Message(3, 1, 5, None, b""),
        Message(0, 2**40, 0, b"\xff", None),
        Message(1, 2, 7, b"k", b"x" * 100),
        Message(1, 3, 7, None, None, 12_000_000),
    ]
    session, topic = Session(), 'it\'s "a" topic'
    (sent,) = arrange_messages(messages).to_batches()
    parts = pa.table(
        message_rows._describe_rows(topic, message_rows.DecodedRows(sent, [{}] * len(messages)))
    )
    with interpreting(session):
        rows = session.createDataFrame(parts, StructType(list(message_rows.OWN)))
        told = rows.selectExpr(f"{kept_as_sql(topic)} AS kept").toArrow()["kept"].to_pylist()
    assert [message_of(each) for each in told] == messages
    assert {json.loads(each)["topic"] for each in told} == {topic}
    assert json.loads(told[2]) == {
        "topic": topic,
        "partition": 1,
        "offset": 2,
        "timestamp": 7,
        "key": "aw==",
        "value": "eHh4" * 33 + "eA==",
    }
    assert {AT, KEY, VALUE, LEFT_OUT} <= set(parts.column_names)


def test_of_a_message_that_is_too_large_only_its_size_is_kept() -> None:
    sent = [(0, None, b"ab"), (1, b"k", b"abc"), (2, None, None)]
    events = [
        Event(topic="t", partition=3, offset=at, key=key, value=value, timestamp=(1, 7))
        for at, key, value in sent
    ]
    assert [*each_message(arrange_events(events, most=3))] == [
        Message(3, 0, 7, None, b"ab"),
        Message(3, 1, 7, None, None, 4),
        Message(3, 2, 7, None, None),
    ]


@pytest.mark.parametrize("read", ["json"], indirect=True)
def test_a_batch_leaves_memory_at_once(read: TopicFeed) -> None:
    def held_after_a_batch() -> int:
        value = b'{"said": "%s"}' % (b"x" * 999)
        rows(read, [Message(0, n, 0, None, value) for n in range(999)], read.reader)
        return pa.total_allocated_bytes()

    before = held_after_a_batch()
    gc.collect()
    gc.disable()
    try:
        assert held_after_a_batch() - before < 500_000
    finally:
        gc.enable()
