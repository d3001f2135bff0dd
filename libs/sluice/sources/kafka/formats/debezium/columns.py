"""Changes of Debezium as columns: the rows after and before them, of many messages at once.

Snapshots, creates and updates are read so, and without a key the rows that changes take away. What
else there is (deletes by key, rows without their key, outbox messages) is left to be read one by
one. So is any message with a value that has no plain meaning.
"""

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType, DateType, DecimalType, TimestampNTZType, TimestampType

from sluice.interpreter.values.arrow_conversion import arrow_type
from sluice.sources.kafka.formats.debezium.envelopes import (
    DECIMAL,
    TAKES,
    VALUES,
    WRITES,
    ConnectType,
)
from sluice.sources.kafka.formats.records import (
    DELETE,
    ArrowFields,
    ColumnarRecords,
    ReadWhole,
    SparkTypes,
)

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
RowMask = npt.NDArray[np.bool_]


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
    has_after, has_before = _there(found.after), _there(found.before)
    writes, takes = _does(found.op, WRITES), _does(found.op, TAKES)
    if key:
        has_key = [_there(found.after.field(name)) for name in key]
        written, taken = np.logical_and.reduce([writes, has_after, *has_key]), None
    else:
        is_whole = (has_after | ~writes) & (has_before | ~takes)
        written, taken = writes & is_whole, takes & is_whole
    nths = None if taken is None else takes[written].astype(int).tolist()
    yield ColumnarRecords(*_chosen(found.after, written, found, types), nths=nths)
    if taken is not None and taken.any():
        yield ColumnarRecords(*_chosen(found.before, taken, found, types), does=DELETE)


def _there(values: pa.Array) -> RowMask:
    there: RowMask = values.is_valid().to_numpy(zero_copy_only=False)
    return there


def _does(op: pa.Array, words: Sequence[str]) -> RowMask:
    does: RowMask = pc.is_in(op, pa.array(words)).to_numpy(zero_copy_only=False)
    return does


def _chosen(
    image: pa.StructArray, chosen: RowMask, found: Changes, types: SparkTypes
) -> tuple[Sequence[int], ArrowFields]:
    """Return the places of chosen messages, and the columns of their rows."""
    columns = {}
    for name, type_ in types.items():
        values = image.field(name).filter(pa.array(chosen))
        meaning = found.meanings.get(name)
        columns[name] = meant(values, meaning, type_) if meaning else values
    return np.flatnonzero(chosen).tolist(), columns


def meant(values: pa.Array, meaning: ConnectType, type_: DataType) -> pa.Array:
    """Return values of the column's type or texts. Raises ValueError and others if one is odd."""
    if meaning.name not in VALUES or values.null_count == len(values):
        return values
    ticks = TICKS.get(meaning.name)
    if ticks and _is_for(type_, ticks) and pa.types.is_integer(values.type):
        return _times(values, ticks, type_)
    to_text, given = VALUES[meaning.name], meaning.parameters
    if meaning.name == DECIMAL and isinstance(type_, DecimalType):
        return _decimals(values, int(given["scale"]), given.get(DIGITS)).cast(arrow_type(type_))
    if DIGITS in given:
        raise ValueError
    return pa.array([None if v is None else to_text(v, given) for v in values.to_pylist()])


def _is_for(type_: DataType, ticks: int) -> bool:
    return isinstance(type_, DateType if ticks == DAY else TimestampType | TimestampNTZType)


def _times(values: pa.Array, ticks: int, type_: DataType) -> pa.Array:
    """Return times or dates that so many ticks of so many microseconds after 1970 are."""
    if pc.min(values).as_py() * ticks < FIRST or pc.max(values).as_py() * ticks > LAST:
        raise ValueError
    if ticks == DAY:
        return values.cast(pa.int32()).cast(pa.date32())
    return pc.multiply(values, pa.scalar(ticks, pa.int64())).view(arrow_type(type_))


def _decimals(values: pa.Array, scale: int, digits: str | None) -> pa.Array:
    """Return decimals whose digits are bytes, or bytes in base64. Raises ValueError for others."""
    numbers = pa.array(map(_unscaled, values.to_pylist()), pa.int64())
    most = 10 ** int(digits or LONGEST)
    least, greatest = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    if not 0 <= scale < LONGEST or least <= -most or greatest >= most:
        raise ValueError
    wide = numbers.cast(pa.decimal128(LONGEST, 0))
    return pa.Array.from_buffers(pa.decimal128(LONGEST, scale), len(wide), wide.buffers())


def _unscaled(value: Any) -> int | None:
    if value is None:
        return None
    raw = value if isinstance(value, bytes) else b64decode(value, validate=True)
    return int.from_bytes(raw, "big", signed=True)
