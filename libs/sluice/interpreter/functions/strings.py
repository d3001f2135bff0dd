"""Functions of texts. Those with Java's regular expressions or formats are left to Spark.

Upper and lower case, where Python's Unicode agrees with that of Spark's ICU.

Spark's is newer. Letters whose case is newer than Unicode 14 are left to it, and all planes except
the first and that of pictographs. The lower case of a capital sigma depends on its neighbours.
"""

import binascii
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.casts import cast, length
from sluice.interpreter.values.casts import whole as whole_number
from sluice.interpreter.values.column_batch import Function, Value, constant, each, kernel, whole
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

_KNOWN = re.compile(
    "[\0-\u019a\u019c-\u0263\u0265-\u1c88\u1c8b-\ua7ca\uac00-\ud7a3\uf900-\ufffd"
    "\U0001f000-\U0001faff]*"
)
_EUROPEAN = re.compile("[\0-\u019a\u019c-\u0263\u0265-\u0294\u0296-\u058f]*")


def upper(value: str) -> str:
    """Return a text in upper case.

    Raises UnsupportedLocally if Spark may see its letters differently.
    """
    return _check(value, _KNOWN).upper()


def lower(value: str) -> str:
    """Return a text in lower case.

    Raises UnsupportedLocally if Spark may see its letters differently.
    """
    return _check(value, _EUROPEAN if "Σ" in value else _KNOWN).lower()


def capitals(value: str) -> str:
    """Return a text whose words between blanks begin with a capital.

    Raises UnsupportedLocally likewise.
    """
    words = _check(value, _EUROPEAN).split(" ")
    return " ".join(word.capitalize() for word in words)


def _check(value: str, known: re.Pattern[str]) -> str:
    if not (value.isascii() or known.fullmatch(value)):
        raise UnsupportedLocally("upper or lower case of rare letters")
    return value


def text(value: Value) -> Value:
    """Return a value as text, where Spark casts implicitly; other types are left to Spark."""
    type_ = value.type
    if is_number(type_) or is_moment(type_) or isinstance(type_, T.BooleanType):
        return cast(value, STRING)
    return only_text(value)


def only_text(value: Value) -> Value:
    """Return a text; other types, which Spark casts to something else, are left to it."""
    if not isinstance(value.type, T.StringType | T.NullType):
        raise UnsupportedLocally(
            f"a string function of a value of type {value.type.simpleString()}"
        )
    return value


def _of_text(type_: T.DataType, function: Callable[..., object], arguments: list[Value]) -> Value:
    return each(type_, function, *map(text, arguments))


def _trim(
    side: Callable[[str, str], str], of_blanks: Callable[..., pa.Array], arguments: list[Value]
) -> Value:
    *characters, value = map(text, arguments)
    if not characters:
        return kernel(STRING, lambda c: of_blanks(c, " "), cast(value, STRING))
    return each(STRING, lambda c, v: side(v, c) if c else v, characters[0], value)


def _substring(arguments: list[Value]) -> Value:
    value, start, *length = arguments
    if isinstance(value.type, T.BinaryType):
        raise UnsupportedLocally("a substring of BINARY")

    def part(v: str, at: int, count: int = 2**31 - 1) -> str:
        first = max(at - 1, 0) if at >= 0 else len(v) + at
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
    return each(STRING, _hash, _bytes(value), whole_number(bits))


def _hash(value: bytes, bits: int) -> str:
    if bits not in (0, 224, 256, 384, 512):
        raise UnsupportedLocally(f"sha2 with {bits} bits")
    return hashlib.new(f"sha{bits or 256}", value).hexdigest()


def _base64(arguments: list[Value]) -> Value:
    def encoded(value: bytes) -> str:
        return binascii.b2a_base64(value, newline=False).decode()

    return each(STRING, encoded, _bytes(arguments[0]))


def _decode(value: str) -> bytes:
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except binascii.Error:
        raise UnsupportedLocally("a string that is not strict Base64") from None


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
        raise UnsupportedLocally(
            "LIKE with a pattern that contains a backslash or is not a constant"
        )
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
        raise UnsupportedLocally("ILIKE with a pattern that is not a constant")
    lowered = constant(lower(pattern.literal), STRING)
    return _like([_of_text(STRING, lower, [value]), lowered])


def _length(arguments: list[Value]) -> Value:
    (value,) = arguments
    if isinstance(value.type, T.BinaryType):
        return kernel(INT, pc.binary_length, value)
    return kernel(INT, pc.utf8_length, cast(text(value), STRING))


def _locate(arguments: list[Value]) -> Value:
    if len(arguments) == 3:
        return _located_from(arguments)
    part, value = arguments
    return _of_text(INT, lambda v, p: v.find(p) + 1, [value, part])


def _located_from(arguments: list[Value]) -> Value:
    part, value, start = arguments

    def place(p: str, v: str, at: int) -> int:
        if at <= 0:
            raise UnsupportedLocally("locate from a position before the first character")
        return v.find(p, at - 1) + 1 if p else 1

    if not (start.is_literal and start.literal):
        raise UnsupportedLocally("locate from a position that is not a constant")
    return each(INT, place, text(part), text(value), whole_number(start))


def _replace(arguments: list[Value]) -> Value:
    value, old, *new = map(text, arguments)
    if not new:
        return each(STRING, lambda v, a: v.replace(a, "") if a else v, value, old)
    return each(STRING, lambda v, a, b: v.replace(a, b) if a else v, value, old, new[0])


def _octets(arguments: list[Value]) -> Value:
    (value,) = arguments
    is_binary = isinstance(value.type, T.BinaryType)
    return kernel(INT, pc.binary_length, value if is_binary else cast(text(value), STRING))


def _until(v: str, by: str, count: int) -> str:
    """Return the text before or after a number of separators, which may overlap."""
    if count == -(2**31):
        raise UnsupportedLocally("substring_index with the smallest INT")
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


def _translate(v: str, old: str, new: str) -> str:
    if "\0" in new:
        raise UnsupportedLocally("translate to a null character")
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
    "locate": _locate,
    "position": _locate,
    "replace": _replace,
    "trim": partial(_trim, str.strip, pc.utf8_trim),
    "ltrim": partial(_trim, str.lstrip, pc.utf8_ltrim),
    "rtrim": partial(_trim, str.rstrip, pc.utf8_rtrim),
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
    "unbase64": partial(_of_text, BINARY, _decode),
    "octet_length": _octets,
    "substring_index": _substring_index,
    "translate": partial(_of_text, STRING, _translate),
    "is_valid_utf8": partial(_of_text, BOOLEAN, lambda _: True),
    "make_valid_utf8": _valid,
    "like": _like,
    "ilike": _ilike,
}


def _split_part(arguments: list[Value]) -> Value:
    value, by, number = arguments

    def part(v: str, separator: str, n: int) -> str:
        if n in (0, -(2**31)):
            raise UnsupportedLocally(f"split_part with the part number {n}")
        parts = v.split(separator) if separator else [v]
        if abs(n) > len(parts):
            return ""
        return parts[n - 1] if n > 0 else parts[n]

    return each(STRING, part, text(value), text(by), whole_number(number))


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
        raise UnsupportedLocally("chr of a value that is not an integer")
    return each(STRING, lambda n: chr(n & 255) if n >= 0 else "", code)


def _ascii(arguments: list[Value]) -> Value:
    return each(INT, lambda v: ord(v[0]) if v else 0, text(arguments[0]))


def _trim_text(arguments: list[Value]) -> Value:
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
    "btrim": _trim_text,
    "bit_length": _bits,
}
