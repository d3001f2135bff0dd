"""Spark's xxhash64: XXH64 of each value's bytes, seeded by the hash of those before it."""

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import xxhash
from pyspark.sql import types as T

from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.column_batch import Function, Value, whole
from sluice.interpreter.values.value_types import LONG

SEED = 42
Hash = Callable[[Any, int], int]


def _of_bytes(pack: Callable[[Any], bytes]) -> Hash:
    return lambda value, seed: xxhash.xxh64_intdigest(pack(value), seed)


def _pack_decimal(value: int) -> bytes:
    length = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return value.to_bytes(length, "big", signed=True)


def _one_zero(value: float) -> float:
    """Return a fraction with Java's one form of NaN, and 0.0 for -0.0."""
    return math.nan if math.isnan(value) else value + 0.0


_INT, _LONG = _of_bytes(struct.Struct("<i").pack), _of_bytes(struct.Struct("<q").pack)
_FLAT: Mapping[type[T.DataType], Hash] = {
    **dict.fromkeys((T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.DateType), _INT),
    **dict.fromkeys((T.LongType, T.TimestampType, T.TimestampNTZType), _LONG),
    T.DoubleType: _of_bytes(lambda v: struct.pack("<d", _one_zero(v))),
    T.FloatType: _of_bytes(lambda v: struct.pack("<f", _one_zero(v))),
    T.StringType: _of_bytes(str.encode),
    T.BinaryType: xxhash.xxh64_intdigest,
    T.NullType: lambda _, seed: seed,
}


def hash_of(type_: T.DataType) -> Hash:
    """Return the hash of a value that is not null, by a seed."""
    match type_:
        case T.DecimalType():
            return _LONG if type_.precision <= 18 else _of_bytes(_pack_decimal)
        case T.ArrayType():
            return _of_parts([hash_of(type_.elementType)])
        case T.StructType():
            return _of_parts([hash_of(f.dataType) for f in type_.fields])
    if type(type_) not in _FLAT:
        raise UnsupportedLocally(f"xxhash64 of a value of type {type_.simpleString()}")
    return _FLAT[type(type_)]


def _of_parts(parts: list[Hash]) -> Hash:
    """Return the hash of a tuple; a single part hashes every element."""

    def of(values: tuple[Any, ...], seed: int) -> int:
        each = parts * len(values) if len(parts) == 1 else parts
        for part, value in zip(each, values, strict=False):
            seed = seed if value is None else part(value, seed)
        return seed

    return of


def _xxhash64(arguments: list[Value]) -> Value:
    hashes = [hash_of(a.type) for a in arguments]

    of = _of_parts(hashes)

    def hashed(*row: Any) -> int:
        found = of(row, SEED)
        return found - (1 << 64) if found >> 63 else found

    return whole(LONG, hashed, *arguments)


HASHING: Mapping[str, Function] = {"xxhash64": _xxhash64}
