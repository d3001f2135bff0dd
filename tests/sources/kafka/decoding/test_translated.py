"""Columns with Connect's meanings become times and decimals as Python counts them."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.types import DateType, DecimalType, TimestampNTZType, TimestampType

from sluice.sources.kafka.debezium import DECIMAL, DIGITS, TICKS, ConnectType, translate_column
from sluice.sources.kafka.json import without_schema

FIRST, LAST = datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
EPOCH, MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)  # noqa: DTZ001


@pytest.mark.parametrize("name", TICKS)
def test_ticks_become_times_or_days_of_years_with_four_digits(name: str) -> None:
    tick, meaning = TICKS[name] * MICROSECOND, ConnectType(name, {})
    first, last = -((EPOCH - FIRST) // tick), (LAST - EPOCH) // tick
    sent = [0, 1, -1, 19_000, None, last]
    times = [None if n is None else EPOCH + n * tick for n in sent]
    if tick == timedelta(days=1):
        days = [None if t is None else t.date() for t in times]
        assert translate_column(pa.array(sent), meaning, DateType()).to_pylist() == days
    else:
        zoned = [None if t is None else t.replace(tzinfo=UTC) for t in times]
        assert translate_column(pa.array(sent), meaning, TimestampNTZType()).to_pylist() == times
        assert translate_column(pa.array(sent), meaning, TimestampType()).to_pylist() == zoned
    type_ = DateType() if tick == timedelta(days=1) else TimestampType()
    for outside in (last + 1, first - 1):
        with pytest.raises(ValueError, match=r"^$"):
            translate_column(pa.array([0, outside]), meaning, type_)
    assert translate_column(pa.array([last]), meaning, type_).type in (
        pa.date32(),
        pa.timestamp("us", "UTC"),
    )


@pytest.mark.parametrize("scale", [0, 1, 2, 18])
@pytest.mark.parametrize("is_text", [True, False])
def test_digits_of_decimals_are_bytes_or_their_base64(scale: int, is_text: bool) -> None:
    whole = [0, 1, -1, 127, 128, -128, -129, 10**17, -(2**62), None]
    raw = [None if n is None else n.to_bytes(9, "big", signed=True) for n in whole]
    sent = [b64encode(r).decode() if is_text and r is not None else r for r in raw]
    meaning = ConnectType(DECIMAL, {"scale": str(scale)})
    found = translate_column(pa.array(sent), meaning, DecimalType(38, 18)).to_pylist()
    assert found == [None if n is None else Decimal(n).scaleb(-scale) for n in whole]


def test_decimals_that_no_64_bits_hold_or_that_have_too_many_digits_are_read_one_by_one() -> None:
    def read(number: int, scale: int = 0, **more: str) -> object:
        raw = pa.array([number.to_bytes(10, "big", signed=True)])
        meaning = ConnectType(DECIMAL, {"scale": str(scale), **more})
        return translate_column(raw, meaning, DecimalType(38, 0)).to_pylist()[0]

    assert read(2**63 - 1) == 2**63 - 1
    assert (read(99, **{DIGITS: "2"}), read(-99, **{DIGITS: "2"})) == (99, -99)
    for number, digits in ((100, "2"), (-100, "2"), (2**63, "19"), (10**19, "30")):
        with pytest.raises((ValueError, OverflowError, pa.ArrowInvalid)):
            read(number, **{DIGITS: digits})
    for scale in (-1, 19):
        with pytest.raises(ValueError, match=r"^$"):
            read(1, scale)


def test_a_schema_that_is_sent_before_each_payload_is_read_once() -> None:
    payloads = [b'{"a":1}', b"null", b'{"a":[1,{"b":"}"}]}', b'"x"', b"7"]
    for shape in (
        b'{"schema":{"type":"x"},"payload":%s}',
        b'{"schema":{"type":"x"}, "payload" : %s}',
    ):
        values = [shape % payload for payload in payloads]
        assert without_schema(values) == (payloads, {"type": "x"})
    after = [b'{"payload":%s,"schema":{"type":"x"}}' % payload for payload in payloads]
    others = [values[0], values[1].replace(b'"x"', b'"y"', 1)]
    for unlike in (after, others, [values[0], values[1][:-1]], [values[0] + b" "], [b"{}"], [b"["]):
        assert without_schema(unlike) == (unlike, None)
