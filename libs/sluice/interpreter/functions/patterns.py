"""Regular expressions that mean the same in Java and in Python.

A pattern is accepted unless it contains parts with a different meaning: classes of letters beyond
ASCII, word boundaries, possessive quantifiers, quoting. `.` and `$` are expanded, because Java has
more line ends. Other patterns are left to Spark.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.functions.signatures import name_each, text
from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.casts import whole
from sluice.interpreter.values.column_batch import Function, Value, constant, each
from sluice.interpreter.values.value_types import BOOLEAN, INT, STRING

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
    most = whole(limit[0]) if limit else constant(0, INT)
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
