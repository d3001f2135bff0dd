"""Parts of texts between separators, and single characters."""

from collections.abc import Mapping

from pyspark.sql import types as T

from sluice.interpreter.functions.cases import capitals
from sluice.interpreter.functions.strings import text
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.casts import length, whole
from sluice.interpreter.values.column_batch import Function, Value, each
from sluice.interpreter.values.value_types import INT, STRING, is_integer


def _split_part(arguments: list[Value]) -> Value:
    value, by, number = arguments

    def part(v: str, separator: str, n: int) -> str:
        if n in (0, -(2**31)):
            raise NotHere(f"split_part with the part number {n}")
        parts = v.split(separator) if separator else [v]
        if abs(n) > len(parts):
            return ""
        return parts[n - 1] if n > 0 else parts[n]

    return each(STRING, part, text(value), text(by), whole(number))


def _find_in_set(arguments: list[Value]) -> Value:
    def place(v: str, of: str) -> int:
        parts = of.split(",")
        return parts.index(v) + 1 if v in parts else 0

    return each(INT, place, *map(text, arguments))


def _initcap(arguments: list[Value]) -> Value:
    return each(STRING, capitals, text(arguments[0]))


def _space(arguments: list[Value]) -> Value:
    return each(STRING, lambda n: " " * n, length(arguments[0]))


def _character(arguments: list[Value]) -> Value:
    """Return the character of a code's last byte."""
    (code,) = arguments
    if not is_integer(code.type):
        raise NotHere("chr of a value that is not an integer")
    return each(STRING, lambda n: chr(n & 255) if n >= 0 else "", code)


def _ascii(arguments: list[Value]) -> Value:
    return each(INT, lambda v: ord(v[0]) if v else 0, text(arguments[0]))


def _trimmed(arguments: list[Value]) -> Value:
    value, *characters = map(text, arguments)
    if not characters:
        return each(STRING, lambda v: v.strip(" "), value)
    return each(STRING, lambda v, c: v.strip(c) if c else v, value, characters[0])


def _bits(arguments: list[Value]) -> Value:
    (value,) = arguments
    if isinstance(value.type, T.BinaryType):
        return each(INT, lambda v: 8 * len(v), value)
    return each(INT, lambda v: 8 * len(v.encode()), text(value))


WORDS: Mapping[str, Function] = {
    "split_part": _split_part,
    "find_in_set": _find_in_set,
    "initcap": _initcap,
    "space": _space,
    "char": _character,
    "chr": _character,
    "ascii": _ascii,
    "btrim": _trimmed,
    "bit_length": _bits,
}
