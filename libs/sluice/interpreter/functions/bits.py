"""Bitwise operators of integers: a result has no more bits than the wider operand."""

import operator
from collections.abc import Callable, Mapping
from functools import partial

from sluice.interpreter.errors import NotHere
from sluice.interpreter.functions.arithmetic import Function
from sluice.interpreter.values.batch import Value, each
from sluice.interpreter.values.types import is_integer, wider


def _joined(of: Callable[[int, int], int], arguments: list[Value]) -> Value:
    a, b = arguments
    if not (is_integer(a.type) and is_integer(b.type)):
        raise NotHere("the bits of what is no integer")
    return each(wider(a.type, b.type), of, a, b)


def _inverted(arguments: list[Value]) -> Value:
    (value,) = arguments
    if not is_integer(value.type):
        raise NotHere("the bits of what is no integer")
    return each(value.type, operator.invert, value)


BITS: Mapping[str, Function] = {
    "&": partial(_joined, operator.and_),
    "|": partial(_joined, operator.or_),
    "^": partial(_joined, operator.xor),
    "~": _inverted,
}
