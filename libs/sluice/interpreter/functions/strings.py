"""Functions of texts, and regular expressions that mean the same in Java and in Python.

Upper and lower case are computed where Python's Unicode agrees with that of Spark's ICU, which is
newer. Letters whose case is newer than Unicode 14 are left to it, and all planes except the first
and that of pictographs. The lower case of a capital sigma depends on its neighbours.

A pattern is accepted unless it contains parts with a different meaning: classes of letters beyond
ASCII, word boundaries, possessive quantifiers, quoting. `.` and `$` are expanded, because Java has
more line ends. Other patterns are left to Spark.
"""

import binascii
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.functions import Signature, name_each, of_ascii, of_column, text
from sluice.interpreter.values import BINARY, BOOLEAN, INT, LONG, STRING
from sluice.interpreter.values.casts import as_int, cast
from sluice.interpreter.values.column_batch import Function, Value, constant, each, kernel, whole

MOST = 2**31 - 1
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


def _trim(strip: Callable[[str, str], str], of_blanks: Callable[..., pa.Array]) -> Function:
    """Return the function that removes blanks, or the characters that stand before the text."""
    blanks = Signature("text", STRING, lambda v: strip(v, " "), lambda c: of_blanks(c, " "))
    others = Signature("text text", STRING, lambda c, v: strip(v, c) if c else v)
    return lambda arguments: (others if arguments[1:] else blanks)(arguments)


def _cut(v: str, at: int, count: int = MOST) -> str:
    first = at - 1 if at > 0 else (len(v) + at if at < 0 else 0)
    return v[max(first, 0) : max(first + count, 0)]


def _cut_column(column: pa.Array, at: int, count: int = MOST) -> pa.Array:
    start = at - 1 if at > 0 else at
    end = start + max(count, 0)
    return pc.utf8_slice_codeunits(column, start, MOST if start < 0 <= end else end)


def _concat_ws(arguments: list[Value]) -> Value:
    by, *others = arguments
    if others and not any(isinstance(a.type, T.ArrayType) for a in others):

        def join_known(by: pa.Array, first: pa.Array, *others: pa.Array) -> pa.Array:
            # A row without any text, which Arrow drops, is empty.
            first = pc.if_else(pc.coalesce(first, *others).is_null(), "", first)
            return pc.binary_join_element_wise(first, *others, by, null_handling="skip")

        return kernel(STRING, join_known, text(by), *map(text, others))

    def joined(separator: str | None, *rows: object) -> str | None:
        if separator is None:
            return None
        parts = (x for row in rows for x in (row if isinstance(row, tuple) else (row,)))
        return separator.join(x for x in parts if isinstance(x, str))

    def texts(value: Value) -> Value:
        if not isinstance(value.type, T.ArrayType):
            return text(value)
        text(Value(value.type.elementType, value.run))
        return cast(value, T.ArrayType(STRING))

    return whole(STRING, joined, text(by), *map(texts, others))


def _hash(value: bytes, bits: int) -> str:
    if bits not in (0, 224, 256, 384, 512):
        raise UnsupportedLocally(f"sha2 with {bits} bits")
    return hashlib.new(f"sha{bits or 256}", value).hexdigest()


def _decode(value: str) -> bytes:
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except binascii.Error:
        raise UnsupportedLocally("a string that is not strict Base64") from None


def _fill(v: str, length: int, by: str) -> str:
    """Return what stands beside a text that is padded to a length."""
    return (by * length)[: length - len(v)] if len(v) < length else ""


def _like(arguments: list[Value]) -> Value:
    value, pattern = arguments
    if not isinstance(pattern.literal, str) or "\\" in pattern.literal:
        raise UnsupportedLocally(
            "LIKE with a pattern that contains a backslash or is not a constant"
        )
    return kernel(BOOLEAN, lambda column: pc.match_like(column, pattern.literal), text(value))


def _ilike(arguments: list[Value]) -> Value:
    value, pattern = arguments
    if not isinstance(pattern.literal, str):
        raise UnsupportedLocally("ILIKE with a pattern that is not a constant")
    return _like([STRINGS["lower"]([value]), constant(lower(pattern.literal), STRING)])


def _locate(arguments: list[Value]) -> Value:
    part, value, *start = arguments
    if not start:
        return STRINGS["instr"]([value, part])
    if not (start[0].is_literal and start[0].literal):
        raise UnsupportedLocally("locate from a position that is not a constant")

    def find_from(part: str, v: str, at: int) -> int:
        if at <= 0:
            raise UnsupportedLocally("locate from a position before the first character")
        return v.find(part, at - 1) + 1 if part else 1

    return Signature("text text int", INT, find_from)(arguments)


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


def _translate(v: str, old: str, new: str) -> str:
    if "\0" in new:
        raise UnsupportedLocally("translate to a null character")
    table: dict[int, str] = {}
    for i, c in enumerate(old):
        table.setdefault(ord(c), new[i] if i < len(new) else "")
    return v.translate(table)


def _split_part(v: str, separator: str, n: int) -> str:
    if n in (0, -(2**31)):
        raise UnsupportedLocally(f"split_part with the part number {n}")
    parts = v.split(separator) if separator else [v]
    if abs(n) > len(parts):
        return ""
    return parts[n - 1] if n > 0 else parts[n]


def _size(value: str | bytes) -> int:
    return len(value.encode() if isinstance(value, str) else value)


STRINGS: Mapping[str, Function] = name_each(
    {
        "upper ucase": ("text", STRING, upper, of_ascii(pc.ascii_upper)),
        "lower lcase": ("text", STRING, lower, of_ascii(pc.ascii_lower)),
        "initcap": ("text", STRING, capitals),
        "length len char_length character_length": (
            "text_or_bytes",
            INT,
            len,
            lambda c: (pc.binary_length if c.type == pa.binary() else pc.utf8_length)(c),
        ),
        "octet_length": ("text_or_bytes", INT, _size, pc.binary_length),
        "bit_length": ("text_or_bytes", INT, lambda v: 8 * _size(v)),
        "startswith": ("text text", BOOLEAN, str.startswith, of_column(pc.starts_with)),
        "endswith": ("text text", BOOLEAN, str.endswith, of_column(pc.ends_with)),
        "contains": ("text text", BOOLEAN, str.__contains__, of_column(pc.match_substring)),
        "instr": (
            "text text",
            INT,
            lambda v, part: v.find(part) + 1,
            of_ascii(lambda c, part: pc.add(pc.find_substring(c, part), pa.scalar(1, pa.int32()))),
        ),
        "locate position": _locate,
        "find_in_set": (
            "text text",
            INT,
            lambda v, of: of.split(",").index(v) + 1 if v in of.split(",") else 0,
        ),
        "replace": (
            "text text text?",
            STRING,
            lambda v, a, b="": v.replace(a, b) if a else v,
            of_column(lambda c, a, b="": pc.replace_substring(c, a, b) if a else c),
        ),
        "trim": _trim(str.strip, pc.utf8_trim),
        "ltrim": _trim(str.lstrip, pc.utf8_ltrim),
        "rtrim": _trim(str.rstrip, pc.utf8_rtrim),
        "btrim": ("text text?", STRING, lambda v, c=" ": v.strip(c) if c else v),
        "substring substr": ("text int int?", STRING, _cut, of_column(_cut_column)),
        "left": (
            "text int",
            STRING,
            lambda v, n: v[: max(n, 0)],
            of_column(lambda c, n: _cut_column(c, 1, n)),
        ),
        "right": (
            "text int",
            STRING,
            lambda v, n: v[-n:] if n > 0 else "",
            of_column(lambda c, n: _cut_column(c, -n) if n > 0 else None),
        ),
        "substring_index": ("text text int", STRING, _until),
        "split_part": ("text text int", STRING, _split_part),
        "translate": ("text text text", STRING, _translate),
        "repeat": ("text length", STRING, lambda v, n: v * n),
        "space": ("length", STRING, lambda n: " " * n),
        "lpad": ("text length text?", STRING, lambda v, n, by=" ": (_fill(v, n, by) + v)[:n]),
        "rpad": ("text length text?", STRING, lambda v, n, by=" ": (v + _fill(v, n, by))[:n]),
        "concat_ws": _concat_ws,
        "hex": (
            "integer_or_bytes",
            STRING,
            lambda v: f"{v & (2**64 - 1):X}" if isinstance(v, int) else v.hex().upper(),
        ),
        "md5": ("bytes", STRING, lambda v: hashlib.md5(v).hexdigest()),
        "sha sha1": ("bytes", STRING, lambda v: hashlib.sha1(v).hexdigest()),
        "sha2": ("bytes int", STRING, _hash),
        "crc32": ("bytes", LONG, binascii.crc32),
        "base64": ("bytes", STRING, lambda v: binascii.b2a_base64(v, newline=False).decode()),
        "unbase64": ("text", BINARY, _decode),
        # The character of a code's last byte.
        "char chr": ("integer", STRING, lambda n: chr(n & 255) if n >= 0 else ""),
        "ascii": ("text", INT, lambda v: ord(v[0]) if v else 0),
        # All texts here are UTF-8.
        "is_valid_utf8": ("text", BOOLEAN, lambda _: True),
        "make_valid_utf8": ("text", STRING, str),
        "like": _like,
        "ilike": _ilike,
    }
)
_DIFFERS = re.compile(
    r"\\[^AzrntdswDSWQ.\\*+?()\[\]{}|^$/\-\"']|\\Q|[*+?}]\+|\[[^\]]*(&&|\[)|[$][*+?{]"
    r"|\(\?(?!:|i[:)])"
)
_CODE = re.compile(r"\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}")  # without halves of a pair
_ESCAPED = re.compile(r"\\.")
_CLASS = re.compile(r"\[\^?\]?[^\]]*\]")
_SIGN = re.compile(r"(?P<kept>\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|[.$]")
_BRACE = re.compile(r"\{(?![0-9]+(,[0-9]*)?\})")  # a letter, which Java refuses
_TAKES_NOTHING_FIRST = re.compile(r"\||[*+?}]\?")
_OF_A_LINE = "[^\n\r\x85\u2028\u2029]"
_AT_THE_END = r"(?:\Z|(?=\r\n\Z)|(?=[\r\x85\u2028\u2029]\Z)|(?<!\r)(?=\n\Z))"


def portable(pattern: object) -> re.Pattern[str]:
    """Return a pattern of Java's. Raises UnsupportedLocally if Python's may mean something else."""
    if not isinstance(pattern, str) or not pattern.isascii():
        raise UnsupportedLocally(f"the pattern {pattern!r}")
    plain = _CODE.sub("a", pattern)
    bare = _CLASS.sub("", _ESCAPED.sub("", plain))
    if _DIFFERS.search(plain) or _BRACE.search(bare):
        raise UnsupportedLocally(f"the pattern {pattern!r}")
    try:
        return re.compile(_SIGN.sub(_written_out, pattern), re.ASCII)
    except re.error as error:
        raise UnsupportedLocally(f"the pattern {pattern!r}: {error}") from None


def _written_out(sign: re.Match[str]) -> str:
    if kept := sign["kept"]:
        return r"\Z" if kept == r"\z" else str(kept)
    return _OF_A_LINE if sign[0] == "." else _AT_THE_END


def _divider(pattern: object) -> re.Pattern[str]:
    found = portable(pattern)
    if found.search(""):
        raise UnsupportedLocally(
            f"the regular expression {pattern!r}, which matches an empty string"
        )
    return found


def _by_pattern(
    type_: T.DataType,
    read: Callable[[object], re.Pattern[str]],
    function: Callable[..., Any],
    arguments: list[Value],
) -> Value:
    """Return a function of a pattern and a text, and perhaps of the number of a group."""
    value, pattern, *group = arguments
    found, number = read(pattern.literal), group[0].literal if group else 1
    if function in (_extract, _extract_all):
        if not isinstance(number, int) or not 0 <= number <= found.groups:
            raise UnsupportedLocally(
                "a group of a regular expression that is not a constant or does not exist"
            )
        return each(type_, partial(function, found, number), text(value))
    return each(type_, partial(function, found), text(value))


def _extract(pattern: re.Pattern[str], number: int, value: str) -> str:
    found = pattern.search(value)
    return (found[number] or "") if found else ""


def _extract_all(pattern: re.Pattern[str], number: int, value: str) -> tuple[str, ...]:
    return tuple(found[number] or "" for found in pattern.finditer(value))


def _replace(arguments: list[Value]) -> Value:
    value, pattern, other = arguments
    new = other.literal
    if not isinstance(new, str) or "$" in new or "\\" in new:
        raise UnsupportedLocally(
            "a replacement that contains $ or a backslash, or is not a constant"
        )
    drops_most = new == "" and not _TAKES_NOTHING_FIRST.search(str(pattern.literal))
    found = portable(pattern.literal) if drops_most else _divider(pattern.literal)
    return each(STRING, lambda v: found.sub(lambda _: new, v), text(value))


def _split_by_pattern(arguments: list[Value]) -> Value:
    value, pattern, *limit = arguments
    parts = _characters if pattern.literal == "" else partial(_between, _divider(pattern.literal))
    most = as_int(limit[0]) if limit else constant(0, INT)
    return each(T.ArrayType(STRING), parts, text(value), most)


def _characters(value: str, most: int) -> tuple[str, ...]:
    """Return at most so many characters, the last one with the rest; all if `most` is 0."""
    last = (min(most, len(value)) if most > 0 else len(value)) - 1
    return (*value[: max(last, 0)], value[last:])


def _between(divider: re.Pattern[str], value: str, most: int) -> tuple[str, ...]:
    """Return so many parts at most; all if `most` is 0."""
    parts, at = list[str](), 0
    for found in divider.finditer(value):
        if len(parts) == most - 1:
            break
        parts.append(value[at : found.start()])
        at = found.end()
    return (*parts, value[at:])


PATTERNS: Mapping[str, Function] = name_each(
    {
        "rlike regexp regexp_like": partial(
            _by_pattern, BOOLEAN, portable, lambda p, v: p.search(v) is not None
        ),
        "regexp_extract": partial(_by_pattern, STRING, portable, _extract),
        "regexp_extract_all": partial(_by_pattern, T.ArrayType(STRING), _divider, _extract_all),
        "regexp_count": partial(_by_pattern, INT, _divider, lambda p, v: len([*p.finditer(v)])),
        "regexp_substr": partial(
            _by_pattern, STRING, portable, lambda p, v: (p.search(v) or [""])[0] or None
        ),
        "regexp_replace": _replace,
        "split": _split_by_pattern,
    }
)
