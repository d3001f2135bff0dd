"""Changes in envelopes of Debezium, of any format: one by one, or by columns.

With a key, snapshots (`r`), creates and updates write a row, and deletes delete it. Key columns
that the row lacks come from the message's key. Without one, an update and a delete need the row as
it was before. Tombstones, messages of the outbox (`m`) and transaction metadata are skipped.

Of many messages at once, snapshots, creates and updates are read by columns, and without a key the
rows that changes take away. What else there is (deletes by key, rows without their key, outbox
messages) is left to be read one by one. So is any message with a value that has no plain meaning.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType, DateType, DecimalType, TimestampNTZType, TimestampType

from sluice.delta.log.files import RowMask
from sluice.interpreter.values import arrow_type
from sluice.language.interval import EPOCH
from sluice.sources.kafka.records import (
    DELETE,
    ArrowFields,
    ColumnarRecords,
    Fields,
    FormatReader,
    Message,
    ReadWhole,
    Record,
    SparkTypes,
    Unusable,
    as_mapping,
)

SHOWN = 80  # characters of a value in a reason
MOST_SCALE, MOST_BYTES = 1000, 420  # both are of numbers of some thousand digits
WRITES, TAKES = ("c", "r", "u"), ("u", "d")
NO_BEFORE = (
    "the row as it was before is missing: give the source {}, or have the connector send it "
    "(REPLICA IDENTITY FULL)"
)
DECIMAL = "org.apache.kafka.connect.data.Decimal"

FIRST, LAST = -30_610_224_000_000_000, 253_402_300_799_999_999  # of years of four digits, in µs
DAY = 86_400_000_000  # µs
LONGEST = 19  # digits of a number in 64 bits
DIGITS = "digits"  # the parameter of decimals that Avro's reader rounds to so many
TICKS: Mapping[str, int] = {  # µs
    "io.debezium.time.Date": DAY,
    "io.debezium.time.Timestamp": 1000,
    "io.debezium.time.MicroTimestamp": 1,
    "org.apache.kafka.connect.data.Date": DAY,
    "org.apache.kafka.connect.data.Timestamp": 1000,
}


@dataclass(frozen=True)
class ConnectType:
    """Connect's name of a column's type, and its parameters."""

    name: str
    parameters: Mapping[str, str]


class Envelope(NamedTuple):
    """A change as sent, and the meanings of its columns if a schema has them."""

    fields: Fields
    meanings: Mapping[str, ConnectType]


def debezium(
    value: Callable[[bytes], Envelope],
    of_key: Callable[[bytes], Envelope | Any],
    key: tuple[str, ...],
    whole: ReadWhole | None = None,
) -> FormatReader:
    """Return the reader of envelopes; `whole` reads many of them by columns."""

    def read(message: Message) -> Iterable[Record]:
        if message.value is None:
            return ()
        sent = message.key

        def own() -> Any:
            return None if sent is None else of_key(sent)

        return tuple(_records(value(message.value), key, own))

    return FormatReader(read, whole=whole)


def _key(found: Any, key: tuple[str, ...]) -> Fields:
    if isinstance(found, Envelope):
        return as_mapping(_translate(found.fields, found.meanings), key)
    return as_mapping(found, key)


def _records(envelope: Envelope, key: tuple[str, ...], own: Callable[[], Any]) -> Iterable[Record]:
    """Yield the rows of a change; `own` reads the message's key, only if it is needed."""
    does = envelope.fields.get("op")
    if does == "m":
        return
    if does not in (*WRITES, "d"):
        raise Unusable(f"op {does} is none of c, r, u, d")
    is_taken_away = does in TAKES and not key
    if is_taken_away:
        yield Record(_read_before(envelope, own), DELETE)
    elif does == "d":
        yield Record({**(_image(envelope, "before") or {}), **_key(own(), key)}, DELETE)
    if does in WRITES:
        if (row := _image(envelope, "after")) is None:
            raise Unusable(f"op {does} without the row after it")
        lacks = any(name not in row for name in key)
        yield Record({**_key(own(), key), **row} if lacks else row, nth=1 if is_taken_away else 0)


def _read_before(envelope: Envelope, own: Callable[[], Any]) -> Fields:
    """Return the row before. Raises Unusable without it, naming the key that might be declared."""
    before = _image(envelope, "before")
    if before is not None:
        return before
    try:
        found = own()
    except Unusable:
        found = None
    names = found.fields if isinstance(found, Envelope) else found
    is_named = isinstance(names, Mapping) and names
    raise Unusable(NO_BEFORE.format(f"`key: [{', '.join(names)}]`" if is_named else "a `key`"))


def _image(envelope: Envelope, name: str) -> Fields | None:
    row = envelope.fields.get(name)
    if row is None:
        return None
    if not isinstance(row, dict):
        raise Unusable(f"`{name}` is not an object")
    return _translate(row, envelope.meanings)


def _translate(row: Fields, meanings: Mapping[str, ConnectType]) -> Fields:
    if not meanings:
        return row
    return {name: _translate_value(name, value, meanings.get(name)) for name, value in row.items()}


def _translate_value(name: str, value: Any, meaning: ConnectType | None) -> Any:
    if value is None or meaning is None or meaning.name not in VALUES:
        return value
    try:
        return VALUES[meaning.name](value, meaning.parameters)
    except (ValueError, TypeError, ArithmeticError, KeyError):
        raise Unusable(
            f"column {name}: {str(value)[:SHOWN]} is not a valid {meaning.name}"
        ) from None


def _after(unit: timedelta) -> Callable[[Any, Mapping[str, str]], str]:
    def moment(value: Any, parameters: Mapping[str, str]) -> str:  # noqa: ARG001
        return (EPOCH + int(value) * unit).replace(tzinfo=None).isoformat(" ")

    return moment


def _nanos(value: Any, parameters: Mapping[str, str]) -> str:
    seconds, nanos = divmod(int(value), 1_000_000_000)
    whole = (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(" ")
    return _after(timedelta(microseconds=1))(int(value) // 1000, parameters) if nanos else whole


def _day(value: Any, parameters: Mapping[str, str]) -> str:  # noqa: ARG001
    return (date(1970, 1, 1) + timedelta(days=int(value))).isoformat()


def _decimal(value: Any, parameters: Mapping[str, str]) -> str:
    raw = value if isinstance(value, bytes) else b64decode(value, validate=True)
    scale = int(parameters["scale"])
    if abs(scale) > MOST_SCALE or len(raw) > MOST_BYTES:  # its text would be as long
        raise ValueError
    sign, digits, _ = Decimal(int.from_bytes(raw, "big", signed=True)).as_tuple()
    return format(Decimal((sign, digits, -scale)), "f")


_MILLIS, _MICROS = _after(timedelta(milliseconds=1)), _after(timedelta(microseconds=1))
VALUES: Mapping[str, Callable[[Any, Mapping[str, str]], str]] = {
    "io.debezium.time.Date": _day,
    "io.debezium.time.Timestamp": _MILLIS,
    "io.debezium.time.MicroTimestamp": _MICROS,
    "io.debezium.time.NanoTimestamp": _nanos,
    "org.apache.kafka.connect.data.Date": _day,
    "org.apache.kafka.connect.data.Timestamp": _MILLIS,
    DECIMAL: _decimal,
    "io.debezium.data.VariableScaleDecimal": lambda value, _: _decimal(
        value["value"], {"scale": value["scale"]}
    ),
}


class Changes(NamedTuple):
    """Envelopes by columns: what each does, and its two images as structs of the columns."""

    op: pa.Array
    before: pa.StructArray
    after: pa.StructArray
    meanings: Mapping[str, ConnectType]


Envelopes = Callable[[Sequence[bytes], SparkTypes], Changes | None]


def by_columns(envelopes: Envelopes, key: tuple[str, ...]) -> ReadWhole:
    """Return the way to read many envelopes, given a format's way to read them by columns."""

    def whole(values: Sequence[bytes], types: SparkTypes) -> Sequence[ColumnarRecords] | None:
        found = envelopes(values, types)
        try:
            return list(_parts(found, key, types)) if found else None
        except (ValueError, TypeError, ArithmeticError, KeyError):  # Arrow's are ValueErrors
            return None

    return whole


def _parts(found: Changes, key: tuple[str, ...], types: SparkTypes) -> Iterator[ColumnarRecords]:
    has_after, has_before = _is_there(found.after), _is_there(found.before)
    writes, takes = _does(found.op, WRITES), _does(found.op, TAKES)
    if key:
        has_key = [_is_there(found.after.field(name)) for name in key]
        written, taken = np.logical_and.reduce([writes, has_after, *has_key]), None
    else:
        is_whole = (has_after | ~writes) & (has_before | ~takes)
        written, taken = writes & is_whole, takes & is_whole
    nths = None if taken is None else takes[written].astype(int).tolist()
    yield ColumnarRecords(*_choose_rows(found.after, written, found, types), nths=nths)
    if taken is not None and taken.any():
        yield ColumnarRecords(*_choose_rows(found.before, taken, found, types), does=DELETE)


def _is_there(values: pa.Array) -> RowMask:
    there: RowMask = values.is_valid().to_numpy(zero_copy_only=False)
    return there


def _does(op: pa.Array, words: Sequence[str]) -> RowMask:
    does: RowMask = pc.is_in(op, pa.array(words)).to_numpy(zero_copy_only=False)
    return does


def _choose_rows(
    image: pa.StructArray, chosen: RowMask, found: Changes, types: SparkTypes
) -> tuple[Sequence[int], ArrowFields]:
    """Return the places of chosen messages, and the columns of their rows."""
    columns = {}
    for name, type_ in types.items():
        values = image.field(name).filter(pa.array(chosen))
        meaning = found.meanings.get(name)
        columns[name] = translate_column(values, meaning, type_) if meaning else values
    return np.flatnonzero(chosen).tolist(), columns


def translate_column(values: pa.Array, meaning: ConnectType, type_: DataType) -> pa.Array:
    """Return values of the column's type or texts. Raises ValueError and others if one is odd."""
    if meaning.name not in VALUES or values.null_count == len(values):
        return values
    ticks = TICKS.get(meaning.name)
    of = DateType if ticks == DAY else TimestampType | TimestampNTZType
    if ticks and isinstance(type_, of) and pa.types.is_integer(values.type):
        return _times(values, ticks, type_)
    to_text, given = VALUES[meaning.name], meaning.parameters
    if meaning.name == DECIMAL and isinstance(type_, DecimalType):
        return _decimals(values, int(given["scale"]), given.get(DIGITS)).cast(arrow_type(type_))
    if DIGITS in given:
        raise ValueError
    return pa.array([None if v is None else to_text(v, given) for v in values.to_pylist()])


def _times(values: pa.Array, ticks: int, type_: DataType) -> pa.Array:
    """Return times or dates that so many ticks of so many microseconds after 1970 are."""
    if pc.min(values).as_py() * ticks < FIRST or pc.max(values).as_py() * ticks > LAST:
        raise ValueError
    if ticks == DAY:
        return values.cast(pa.int32()).cast(pa.date32())
    return pc.multiply(values, pa.scalar(ticks, pa.int64())).view(arrow_type(type_))


def _decimals(values: pa.Array, scale: int, digits: str | None) -> pa.Array:
    """Return decimals whose digits are bytes, or bytes in base64. Raises ValueError for others."""
    numbers = pa.array(map(_read_integer, values.to_pylist()), pa.int64())
    most = 10 ** int(digits or LONGEST)
    least, greatest = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    if not 0 <= scale < LONGEST or least <= -most or greatest >= most:
        raise ValueError
    wide = numbers.cast(pa.decimal128(LONGEST, 0))
    return pa.Array.from_buffers(pa.decimal128(LONGEST, scale), len(wide), wide.buffers())


def _read_integer(value: Any) -> int | None:
    if value is None:
        return None
    raw = value if isinstance(value, bytes) else b64decode(value, validate=True)
    return int.from_bytes(raw, "big", signed=True)
