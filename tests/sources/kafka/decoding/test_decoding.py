"""Messages are decoded fast, and mean what the exact parser says."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql.types import ArrayType, BinaryType, LongType, StringType
from tests.sources.kafka.decoding.odd import ODD

from sluice.sources.kafka import json as json_messages
from sluice.sources.kafka.json import parse_json
from sluice.sources.kafka.records import (
    FormatReader,
    Message,
    Record,
    Unusable,
    arrange_messages,
    to_json,
)
from sluice.sources.kafka.rows import FAULT, DecodedColumn, decode_all

TEXT = StringType()


def meaning(read: Callable[[bytes], Any], data: bytes) -> str:
    try:
        return to_json(read(data))
    except Unusable as fault:
        return f"unusable: {fault}"


@pytest.mark.parametrize("text", ODD, ids=lambda text: text[:30].encode("unicode_escape").decode())
def test_a_message_means_the_same_to_both_parsers(text: str) -> None:
    data = text.encode()
    assert meaning(parse_json, data) == meaning(json_messages._parse_slowly, data)


@pytest.mark.parametrize("data", [b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}', b"\xff\xfe{}"])
def test_bytes_that_are_no_text_are_named_by_both_parsers(data: bytes) -> None:
    assert meaning(parse_json, data) == "unusable: the message is not in UTF-8"


def test_a_plain_message_needs_no_second_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_messages, "_parse_slowly", None)
    row = {"id": 7, "at": "2024-05-01 10:00:00", "s": 'a "b": c', "n": {"x": [1.5, -0.25, None]}}
    assert to_json(parse_json(json.dumps(row).encode())) == to_json(row)


def message(offset: int, value: bytes | None = None, left_out: int = 0) -> Message:
    return Message(3, offset, 1_700_000_000_000, None, value, left_out)


def records(message: Message) -> list[Record]:
    assert message.value is not None
    found = json.loads(message.value)
    return [Record(each, nth=nth) for nth, each in enumerate(found)]


def test_a_message_gives_all_of_its_rows_or_none() -> None:
    columns = [
        DecodedColumn("v", LongType(), TEXT),
        DecodedColumn("l", ArrayType(LongType()), ArrayType(TEXT)),
    ]
    good, half = [{"v": 1, "l": [2]}, {"v": 2**70}], [{"v": 1}, {"v": 2, "l": "no list"}]
    messages = [message(n, json.dumps(each).encode()) for n, each in enumerate((good, half))]
    found = decode_all("t", columns, arrange_messages(messages), FormatReader(records)).to_pylist()
    assert [(r["v"], r["l"], r["_sluice_id"], r[FAULT]) for r in found] == [
        ("1", ["2"], "3-0", None),
        (str(2**70), None, "3-0-1", None),
        (None, None, "3-1", 'column l: "no list" is not a valid ARRAY<BIGINT>'),
    ]


def test_no_messages_give_no_rows_of_all_columns() -> None:
    columns = [DecodedColumn("v", LongType(), TEXT)]
    found = decode_all("t", columns, arrange_messages([]), FormatReader(records))
    assert (found.num_rows, {"v", FAULT} <= {*found.column_names}) == (0, True)


def test_bytes_of_a_binary_column_are_written_in_base64() -> None:
    rows = [{"b": b"\xff\x00", "s": b"text"}, {"b": None, "s": None}]
    assert DecodedColumn("b", BinaryType(), TEXT).of(rows).to_pylist() == ["/wA=", None]
    assert DecodedColumn("s", TEXT, TEXT).of(rows).to_pylist() == ["text", None]


def test_a_reason_is_short_and_can_be_stored() -> None:
    def refuses(_: Message) -> list[Record]:
        raise Unusable("\ud800" + "x" * 1000)

    (found,) = decode_all(
        "t", [], arrange_messages([message(0, b"")]), FormatReader(refuses)
    ).to_pylist()
    assert found[FAULT] == "?" + "x" * 299


def test_a_message_that_was_too_large_is_kept_without_its_bytes() -> None:
    huge = message(5, left_out=12_000_000)
    (found,) = decode_all("t", [], arrange_messages([huge]), FormatReader(records)).to_pylist()
    assert found[FAULT] == "the message has 12,000,000 bytes, more than `max_message_bytes`"
    assert (found["_sluice_left_out"], found["_sluice_value"]) == (12_000_000, None)


def one_by_one(values: Sequence[bytes]) -> str:
    return ", ".join(meaning(json_messages.read_bare, value) for value in values)


@pytest.mark.parametrize("odd", [text.encode() for text in ODD[:-6]], ids=lambda o: o[:30].decode())
def test_many_messages_at_once_mean_what_each_means(odd: bytes) -> None:
    plain = [b'{"a":1}', b'{"a":"x:y","at":"2024-05-01"}', b'{"n":{"b":[1.50]}}']
    for values in ([odd, *plain], [*plain, odd], [plain[0], odd, odd, plain[1]], [odd, b"", odd]):
        found = json_messages.rows_of_json(values)
        assert found is None or ", ".join(map(to_json, found)) == one_by_one(values)


TWO_IN_ONE = (  # as many objects as messages, but not one in each
    [b'{"a":1}{"a":2}', b""],
    [b'{"a":1}\n{"a":2}', b" "],
    [b'{"a":', b'{"b":1}}', b'{}{"c":1}'],
    [b'{"a":[{}', b"{}]}", b"{}{}"],
    [b'{"a":"}', b'{"b":"c"}', b"{}{}"],
    [b'{"a":1}', b'\n{"a":2}'],
    [b'{"schema":null,"payload":{"a":1}}', b"{}"],
)


@pytest.mark.parametrize("values", TWO_IN_ONE)
def test_messages_of_doubtful_bounds_are_read_one_by_one(values: list[bytes]) -> None:
    assert json_messages.rows_of_json(values) is None
    assert json_messages.rows_of_json([b'{"a":1}', b'{"a":2}']) == [{"a": 1}, {"a": 2}]
