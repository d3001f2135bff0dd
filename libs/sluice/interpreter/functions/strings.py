"""Functions of texts. Those with Java's regular expressions or formats are left to Spark."""

import binascii
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import types as T

from sluice.interpreter.functions.cases import lower, upper
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.casts import cast, length
from sluice.interpreter.values.casts import whole as whole_number
from sluice.interpreter.values.column_batch import Function, Value, constant, each, whole
from sluice.interpreter.values.value_types import (
    BINARY,
    BOOLEAN,
    INT,
    LONG,
    STRING,
    is_integer,
    is_moment,
    is_number,
)


def text(value: Value) -> Value:
    """Return a value as text, where Spark casts implicitly; other types are left to Spark."""
    type_ = value.type
    if is_number(type_) or is_moment(type_) or isinstance(type_, T.BooleanType):
        return cast(value, STRING)
    return only_text(value)


def only_text(value: Value) -> Value:
    """Return a text; other types, which Spark casts to something else, are left to it."""
    if not isinstance(value.type, T.StringType | T.NullType):
        raise NotHere(f"a string function of a value of type {value.type.simpleString()}")
    return value


def _of_text(type_: T.DataType, function: Callable[..., object], arguments: list[Value]) -> Value:
    return each(type_, function, *map(text, arguments))


def _trim(side: Callable[[str, str], str], arguments: list[Value]) -> Value:
    *characters, value = map(text, arguments)
    if not characters:
        return each(STRING, lambda v: side(v, " "), value)
    return each(STRING, lambda c, v: side(v, c) if c else v, characters[0], value)


def _substring(arguments: list[Value]) -> Value:
    value, start, *length = arguments
    if isinstance(value.type, T.BinaryType):
        raise NotHere("a substring of BINARY")

    def part(v: str, at: int, count: int = 2**31 - 1) -> str:
        first = at - 1 if at > 0 else (len(v) + at if at < 0 else 0)
        last = first + count
        return v[max(first, 0) : max(last, 0)]

    return each(STRING, part, text(value), *(whole_number(n) for n in (start, *length)))


def _ends(function: Callable[[str, int], str], arguments: list[Value]) -> Value:
    value, count = arguments
    return each(STRING, function, text(value), whole_number(count))


def _repeat(arguments: list[Value]) -> Value:
    value, count = arguments
    return each(STRING, lambda v, n: v * n, text(value), length(count))


def _concat_ws(arguments: list[Value]) -> Value:
    by, *others = arguments

    def joined(separator: str | None, *rows: object) -> str | None:
        if separator is None:
            return None
        parts: list[str] = []
        for row in rows:
            found = row if isinstance(row, tuple) else (row,)
            parts += [x for x in found if x is not None]
        return separator.join(parts)

    def texts(value: Value) -> Value:
        if not isinstance(value.type, T.ArrayType):
            return text(value)
        text(Value(value.type.elementType, value.run))
        return cast(value, T.ArrayType(STRING))

    return whole(STRING, joined, text(by), *map(texts, others))


def _hex(arguments: list[Value]) -> Value:
    (value,) = arguments
    if is_integer(value.type):
        return each(STRING, lambda v: f"{v & (2**64 - 1):X}", value)
    if isinstance(value.type, T.BinaryType):
        return each(STRING, lambda v: v.hex().upper(), value)
    return each(STRING, lambda v: v.encode().hex().upper(), only_text(value))


def _bytes(value: Value) -> Value:
    return value if isinstance(value.type, T.BinaryType) else cast(only_text(value), BINARY)


def _md5(arguments: list[Value]) -> Value:
    return each(STRING, lambda v: hashlib.md5(v).hexdigest(), _bytes(arguments[0]))


def _sha1(arguments: list[Value]) -> Value:
    return each(STRING, lambda v: hashlib.sha1(v).hexdigest(), _bytes(arguments[0]))


def _crc32(arguments: list[Value]) -> Value:
    return each(LONG, binascii.crc32, _bytes(arguments[0]))


def _sha2(arguments: list[Value]) -> Value:
    value, bits = arguments
    return each(STRING, _hashed, _bytes(value), whole_number(bits))


def _hashed(value: bytes, bits: int) -> str:
    if bits not in (0, 224, 256, 384, 512):
        raise NotHere(f"sha2 with {bits} bits")
    return hashlib.new(f"sha{bits or 256}", value).hexdigest()


def _base64(arguments: list[Value]) -> Value:
    def encoded(value: bytes) -> str:
        return binascii.b2a_base64(value, newline=False).decode()

    return each(STRING, encoded, _bytes(arguments[0]))


def _decoded(value: str) -> bytes:
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except binascii.Error:
        raise NotHere("a string that is not strict Base64") from None


def _pad(arguments: list[Value], *, left: bool) -> Value:
    value, count, *fill = arguments

    def padded(v: str, n: int, by: str) -> str:
        if len(v) >= n or not by:
            return v[:n]
        more = (by * n)[: n - len(v)]
        return more + v if left else v + more

    by = text(fill[0]) if fill else constant(" ", STRING)
    return each(STRING, padded, text(value), length(count), by)


def _like(arguments: list[Value]) -> Value:
    value, pattern = arguments
    if not isinstance(pattern.literal, str) or "\\" in pattern.literal:
        raise NotHere("LIKE with a pattern that contains a backslash or is not a constant")
    if "_" in pattern.literal:
        signs = {"_": ".", "%": ".*"}
        form = re.compile("".join(signs.get(c) or re.escape(c) for c in pattern.literal), re.DOTALL)
        return each(BOOLEAN, lambda v: form.fullmatch(v) is not None, text(value))
    first, *middle = pattern.literal.split("%")
    if not middle:
        return each(BOOLEAN, lambda v: v == first, text(value))
    *inner, last = middle
    parts = [part for part in inner if part]

    def matches(v: str) -> bool:
        if not (v.startswith(first) and v.endswith(last) and len(v) >= len(first) + len(last)):
            return False
        at, end = len(first), len(v) - len(last)
        for part in parts:
            found = v.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True

    return each(BOOLEAN, matches, text(value))


def _ilike(arguments: list[Value]) -> Value:
    value, pattern = arguments
    if not isinstance(pattern.literal, str):
        raise NotHere("ILIKE with a pattern that is not a constant")
    lowered = constant(lower(pattern.literal), STRING)
    return _like([_of_text(STRING, lower, [value]), lowered])


def _length(arguments: list[Value]) -> Value:
    (value,) = arguments
    return each(INT, len, value if isinstance(value.type, T.BinaryType) else text(value))


def _located(arguments: list[Value]) -> Value:
    if len(arguments) == 3:
        return _located_from(arguments)
    part, value = arguments
    return _of_text(INT, lambda v, p: v.find(p) + 1, [value, part])


def _located_from(arguments: list[Value]) -> Value:
    part, value, start = arguments

    def place(p: str, v: str, at: int) -> int:
        if at <= 0:
            raise NotHere("locate from a position before the first character")
        return v.find(p, at - 1) + 1 if p else 1

    if not (start.is_literal and start.literal):
        raise NotHere("locate from a position that is not a constant")
    return each(INT, place, text(part), text(value), whole_number(start))


def _replaced(arguments: list[Value]) -> Value:
    value, old, *new = map(text, arguments)
    if not new:
        return each(STRING, lambda v, a: v.replace(a, "") if a else v, value, old)
    return each(STRING, lambda v, a, b: v.replace(a, b) if a else v, value, old, new[0])


def _octets(arguments: list[Value]) -> Value:
    (value,) = arguments
    if isinstance(value.type, T.BinaryType):
        return each(INT, len, value)
    return each(INT, lambda v: len(v.encode()), text(value))


def _until(v: str, by: str, count: int) -> str:
    """Return the text before or after a number of separators, which may overlap."""
    if count == -(2**31):
        raise NotHere("substring_index with the smallest INT")
    if not by or not count:
        return ""
    at = -1 if count > 0 else len(v) - len(by) + 1
    for _ in range(abs(count)):
        at = v.find(by, at + 1) if count > 0 else v.rfind(by, 0, at - 1 + len(by))
        if at < 0:
            return v
    return v[:at] if count > 0 else v[at + len(by) :]


def _substring_index(arguments: list[Value]) -> Value:
    value, by, count = arguments
    return each(STRING, _until, text(value), text(by), whole_number(count))


def _translated(v: str, old: str, new: str) -> str:
    if "\0" in new:
        raise NotHere("translate to a null character")
    table: dict[int, str] = {}
    for i, c in enumerate(old):
        table.setdefault(ord(c), new[i] if i < len(new) else "")
    return v.translate(table)


def _valid(arguments: list[Value]) -> Value:
    """Return a text unchanged: here, all are UTF-8."""
    return cast(text(arguments[0]), STRING)


TEXTS: Mapping[str, Function] = {
    "upper": partial(_of_text, STRING, upper),
    "ucase": partial(_of_text, STRING, upper),
    "lower": partial(_of_text, STRING, lower),
    "lcase": partial(_of_text, STRING, lower),
    "length": _length,
    "len": _length,
    "char_length": _length,
    "character_length": _length,
    "startswith": partial(_of_text, BOOLEAN, str.startswith),
    "endswith": partial(_of_text, BOOLEAN, str.endswith),
    "contains": partial(_of_text, BOOLEAN, lambda v, part: part in v),
    "instr": partial(_of_text, INT, lambda v, part: v.find(part) + 1),
    "locate": _located,
    "position": _located,
    "replace": _replaced,
    "trim": partial(_trim, str.strip),
    "ltrim": partial(_trim, str.lstrip),
    "rtrim": partial(_trim, str.rstrip),
    "substring": _substring,
    "substr": _substring,
    "left": partial(_ends, lambda v, n: v[: max(n, 0)]),
    "right": partial(_ends, lambda v, n: v[-n:] if n > 0 else ""),
    "repeat": _repeat,
    "lpad": partial(_pad, left=True),
    "rpad": partial(_pad, left=False),
    "concat_ws": _concat_ws,
    "hex": _hex,
    "md5": _md5,
    "sha": _sha1,
    "sha1": _sha1,
    "sha2": _sha2,
    "crc32": _crc32,
    "base64": _base64,
    "unbase64": partial(_of_text, BINARY, _decoded),
    "octet_length": _octets,
    "substring_index": _substring_index,
    "translate": partial(_of_text, STRING, _translated),
    "is_valid_utf8": partial(_of_text, BOOLEAN, lambda _: True),
    "make_valid_utf8": _valid,
    "like": _like,
    "ilike": _ilike,
}
