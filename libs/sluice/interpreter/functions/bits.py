"""Bitwise operators of integers: a result has no more bits than the wider operand."""

import operator
from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import types as T

from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.casts import whole
from sluice.interpreter.values.column_batch import Function, Value, each
from sluice.interpreter.values.value_types import BITS as SIZES
from sluice.interpreter.values.value_types import INT, STRING, is_integer, wider


def _joined(of: Callable[[int, int], int], arguments: list[Value]) -> Value:
    a, b = arguments
    if not (is_integer(a.type) and is_integer(b.type)):
        raise NotHere("bitwise functions of values that are not integers")
    return each(wider(a.type, b.type), of, a, b)


def _inverted(arguments: list[Value]) -> Value:
    (value,) = arguments
    if not is_integer(value.type):
        raise NotHere("bitwise functions of values that are not integers")
    return each(value.type, operator.invert, value)


def _shifted(of: Callable[[int, int, int], int], arguments: list[Value]) -> Value:
    value, by = arguments
    if not isinstance(value.type, T.IntegerType | T.LongType):
        raise NotHere("a shift of a value that is not INT or BIGINT")
    size = SIZES[type(value.type)]
    half = 1 << (size - 1)

    def shifted(v: int, n: int) -> int:
        return (of(v, n % size, size) + half) % (2 * half) - half

    return each(value.type, shifted, value, whole(by))


def _unsigned(v: int, n: int, size: int) -> int:
    return (v % (1 << size)) >> n


def _count(arguments: list[Value]) -> Value:
    (value,) = arguments
    if not is_integer(value.type):
        raise NotHere("bitwise functions of values that are not integers")
    return each(INT, lambda v: (v % (1 << 64)).bit_count(), value)


def _binary(arguments: list[Value]) -> Value:
    (value,) = arguments
    if not is_integer(value.type):
        raise NotHere("bitwise functions of values that are not integers")
    return each(STRING, lambda v: f"{v % (1 << 64):b}", value)


BITS: Mapping[str, Function] = {
    "&": partial(_joined, operator.and_),
    "|": partial(_joined, operator.or_),
    "^": partial(_joined, operator.xor),
    "~": _inverted,
    "shiftleft": partial(_shifted, lambda v, n, _: v << n),
    "shiftright": partial(_shifted, lambda v, n, _: v >> n),
    "shiftrightunsigned": partial(_shifted, _unsigned),
    "bit_count": _count,
    "bin": _binary,
}
