"""Spark's xxhash64: XXH64 of each value's bytes, seeded by the hash of those before it."""

import struct
from collections.abc import Callable, Mapping
from typing import Any

import xxhash
from pyspark.sql import types as T

from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.column_batch import Value, whole
from sluice.interpreter.values.value_types import LONG

SEED = 42
Hash = Callable[[Any, int], int]


_PACK_INT, _PACK_LONG = struct.Struct("<i").pack, struct.Struct("<q").pack


def _int(value: int, seed: int) -> int:
    return xxhash.xxh64_intdigest(_PACK_INT(value), seed)


def _long(value: int, seed: int) -> int:
    return xxhash.xxh64_intdigest(_PACK_LONG(value), seed)


def _double(value: float, seed: int) -> int:
    if value != value:  # noqa: PLR0124 - NaN, in Java's one form
        return _long(0x7FF8000000000000, seed)
    return xxhash.xxh64_intdigest(struct.pack("<d", value + 0.0), seed)


def _float(value: float, seed: int) -> int:
    if value != value:  # noqa: PLR0124 - NaN, in Java's one form
        return _int(0x7FC00000, seed)
    return xxhash.xxh64_intdigest(struct.pack("<f", value + 0.0), seed)


def _text(value: str, seed: int) -> int:
    return xxhash.xxh64_intdigest(value.encode(), seed)


def _decimal(value: int, seed: int) -> int:
    length = max(value, ~value).bit_length() // 8 + 1
    return xxhash.xxh64_intdigest(value.to_bytes(length, "big", signed=True), seed)


def hash_of(type_: T.DataType) -> Hash:  # noqa: C901, PLR0911 - one per type
    """Return the hash of a value that is not null, by a seed."""
    match type_:
        case T.BooleanType() | T.ByteType() | T.ShortType() | T.IntegerType() | T.DateType():
            return _int
        case T.LongType() | T.TimestampType() | T.TimestampNTZType():
            return _long
        case T.DoubleType():
            return _double
        case T.FloatType():
            return _float
        case T.StringType():
            return _text
        case T.BinaryType():
            return xxhash.xxh64_intdigest
        case T.DecimalType():
            return _long if type_.precision <= 18 else _decimal
        case T.NullType():
            return lambda _, seed: seed
        case T.ArrayType():
            return _of_parts([hash_of(type_.elementType)])
        case T.StructType():
            return _of_parts([hash_of(f.dataType) for f in type_.fields])
    raise UnsupportedLocally(f"xxhash64 of a value of type {type_.simpleString()}")


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

    def hashed(*row: Any) -> int:
        seed = SEED
        for part, value in zip(hashes, row, strict=True):
            seed = seed if value is None else part(value, seed)
        return seed - (1 << 64) if seed >> 63 else seed

    return whole(LONG, hashed, *arguments)


HASHING: Mapping[str, Callable[[list[Value]], Value]] = {"xxhash64": _xxhash64}
