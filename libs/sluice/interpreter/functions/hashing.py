"""Spark's xxhash64: XXH64 of each value's bytes, seeded by the hash of those before it.

Numbers of a column are hashed together; the algorithm for four and eight bytes is that of
https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
"""

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.values import LONG, from_arrow, is_fraction
from sluice.interpreter.values.column_batch import Function, Value, kernel
from sluice.interpreter.values.numbering import unify_floats, whole_numbers

SEED = 42
PRIMES = np.array(
    [
        *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
        *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
    ],
    np.uint64,
)
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

    def hashed(*columns: pa.Array) -> pa.Array:
        found = np.full(len(columns[0]), SEED, np.uint64)
        for column, argument, part in zip(columns, arguments, hashes, strict=True):
            found = np.where(column.is_valid(), _hash(column, argument.type, part, found), found)
        return pa.array(found.view(np.int64))

    return kernel(LONG, hashed, *arguments)


def _hash(column: pa.Array, type_: T.DataType, part: Hash, seeds: np.ndarray) -> np.ndarray:
    """Return the hashes of values by a seed each; anything for null."""
    if part in (_INT, _LONG):
        return _hash_numbers(whole_numbers(column), seeds, is_short=part is _INT)
    if is_fraction(type_):
        bits = np.asarray(unify_floats(column).fill_null(0.0))
        is_short = bits.itemsize == 4
        return _hash_numbers(bits.view(np.int32 if is_short else np.int64), seeds, is_short)
    pairs = zip(from_arrow(column, type_), seeds.tolist(), strict=True)
    found = (seed if value is None else part(value, seed) for value, seed in pairs)
    return np.fromiter(found, np.uint64, len(seeds))


def _hash_numbers(numbers: np.ndarray, seeds: np.ndarray, is_short: bool) -> np.ndarray:
    one, two, three, four, five = PRIMES
    given = numbers.astype(np.int64).view(np.uint64)
    if is_short:
        found = seeds + five + np.uint64(4) ^ (given & np.uint64(0xFFFFFFFF)) * one
        found = _rotate(found, 23) * two + three
    else:
        found = seeds + five + np.uint64(8) ^ _rotate(given * two, 31) * one
        found = _rotate(found, 27) * one + four
    found = (found ^ found >> np.uint64(33)) * two
    found = (found ^ found >> np.uint64(29)) * three
    result: np.ndarray = found ^ found >> np.uint64(32)
    return result


def _rotate(numbers: np.ndarray, bits: int) -> np.ndarray:
    turned: np.ndarray = numbers << np.uint64(bits) | numbers >> np.uint64(64 - bits)
    return turned


HASHING: Mapping[str, Function] = {"xxhash64": _xxhash64}
