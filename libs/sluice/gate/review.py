"""Review of expectations: their mistakes, reported before any batch is judged.

Only `sluice validate` asks. An expectation is checked in three ways.

Great Expectations checks names and arguments. Importing it takes seconds, so plain expectations are
left out: the table `ARGUMENTS` says which arguments are certainly valid, and a test checks it with
Great Expectations itself. Other checks without a finding are kept from one command to the
next, because they depend only on the expectation and the library's version. That file can be
deleted any time. If the library is not installed, nothing is checked: the project can be read and
planned, but no batch can be judged.

This module checks what the library leaves to run time: values that can't be compared with their
column, invalid row conditions, and expectations that can't be evaluated on a batch.

Regular expressions are checked against Java's syntax, which Spark's RLIKE has, without Java.
Differences in syntax are translated to Python's, then `re` checks the pattern. Where the two can't
be compared, the pattern passes. Spark then refuses a wrong one in the first batch. That is late,
but a wrongly refused pattern would have no workaround.
"""

import datetime as dt
import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sluice.cache import cache_folder, write_whole
from sluice.declare.table_spec import Expectation
from sluice.extras import is_installed
from sluice.gate import suite
from sluice.gate.suite import COMPILERS, refusals
from sluice.language.expression import Expression
from sluice.language.inference import infer
from sluice.language.names import unknown
from sluice.language.type_rules import problems

ESCAPES = frozenset("tnrfaedDhHsSvVwWbBAGZzRXQkxucpPN0123456789")

# Java's syntax -> Python's, or an equivalent: one character, or nothing.
_SPELLINGS = (
    (re.compile(r"\\Q.*?(?:\\E|$)", re.DOTALL), "x"),
    (re.compile(r"\\x\{[0-9A-Fa-f]{1,6}\}|\\0[0-7]{1,3}|\\c[@-_a-z]|\\[1-9]\d*|\\e"), "x"),
    (re.compile(r"\\N\{[^{}]+\}|\\[pP](?:\{\^?[A-Za-z0-9_=]+\}|[A-Z])|\\[hHRXvV]"), "x"),
    (re.compile(r"\\b\{g\}|\\[GzZA]"), ""),
    (re.compile(r"\\k<([A-Za-z][A-Za-z0-9]*)>"), r"(?P=\1)"),
    (re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>"), r"(?P<\1>"),
    (re.compile(r"\(\?<([=!])"), r"(?\1"),  # its limits depend on Java
    (re.compile(r"\(\?[idmsuxU-]+\)"), ""),
    (re.compile(r"\(\?[idmsuxU-]+:"), "(?:"),
    (re.compile(r"\{\d+(?:,\d*)?\}"), r"\g<0>"),
    (re.compile(r"\\.", re.DOTALL), r"\g<0>"),
)
_REFUSED = (
    (re.compile(r"\(\?P"), "a group is named by (?<name>...) and referenced by \\k<name>"),
    (re.compile(r"\(\?#"), "Java knows no comments (?#...)"),
    (re.compile(r"\(\?\("), "Java knows no conditions (?(1)...)"),
    (re.compile(r"\(\?[A-Za-z-]*[^idmsuxU\W-][A-Za-z-]*[:)]"), "the flags are i, d, m, s, u, x, U"),
    (re.compile(r"\{(?!\d+(?:,\d*)?\})"), "a brace that counts nothing is written \\{"),
)
_MANY = re.compile(
    r"\\[dDwWsShHvVRXpPN]"
)  # in a class: several characters, so not the end of a range


def problem(pattern: str) -> str:
    """Return the mistake in the pattern; '' if Java should accept it."""
    try:
        translated = _translate(pattern)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(translated)
    except (ValueError, OverflowError, re.error) as error:
        return f"{pattern!r} is not a regular expression: {str(error).split(' at position')[0]}"
    return ""


def _translate(pattern: str) -> str:
    words, at = [], 0
    while at < len(pattern):
        word, at = _class(pattern, at) if pattern[at] == "[" else _word(pattern, at)
        words.append(word)
    return "".join(words)


def _word(pattern: str, at: int) -> tuple[str, int]:
    """Return the token at a place, in Python's syntax, and where it ends."""
    for refused, why in _REFUSED:
        if refused.match(pattern, at):
            raise ValueError(why)
    if pattern[at] == "\\":
        _check_escape(pattern[at + 1 : at + 2])
    for java, python in _SPELLINGS:
        if found := java.match(pattern, at):
            return found.expand(python), found.end()
    return pattern[at], at + 1


def _check_escape(letter: str) -> None:
    if not letter:
        raise ValueError("nothing follows the last \\")
    if letter.isascii() and letter.isalpha() and letter not in ESCAPES:
        raise ValueError(f"\\{letter} means nothing")


def _class(pattern: str, start: int) -> tuple[str, int]:
    """Return a character class; one that contains others becomes any character."""
    at = start + 1 + pattern.startswith("^", start + 1)
    first, words, is_plain = at, [pattern[start:at]], True
    while at < len(pattern):
        if pattern[at] == "]" and at > first:
            words.append("]")
            whole = "".join(words)
            return (whole if is_plain and any(words[1:-1]) else "x"), at + 1
        if pattern[at] == "[" or pattern.startswith("&&", at):
            is_plain = False
        word, at = _member(pattern, at)
        words.append(word)
    raise ValueError("a character class [ is not closed")


def _member(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "[":
        return _class(pattern, at)
    if pattern[at] != "\\":
        return pattern[at], at + 1
    word, end = _word(pattern, at)
    return ("" if _MANY.match(pattern, at) else word), end


Test = Callable[[Any], bool]
LARGEST = 10**15


def is_plain(expectation: Expectation) -> bool:
    """True if Great Expectations has the expectation and accepts its arguments, without asking."""
    if expectation.type not in ARGUMENTS:
        return False
    needed, more = ARGUMENTS[expectation.type]
    kwargs, accepted = expectation.kwargs, {**needed, **more}
    if not needed.keys() <= kwargs.keys() <= accepted.keys():
        return False
    if not all(accepted[name](value) for name, value in kwargs.items()):
        return False
    bounds = [kwargs[name] for name in ("min_value", "max_value") if name in kwargs]
    return "min_value" not in accepted or (bool(bounds) and bounds[0] <= bounds[-1])


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) <= LARGEST


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (type(value) is float and abs(value) <= LARGEST)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _are_values(value: Any) -> bool:
    is_list = isinstance(value, list) and bool(value)
    return is_list and (all(map(_is_text, value)) or all(map(_is_number, value)))


def _between(test: Test) -> dict[str, Test]:
    return {"min_value": test, "max_value": test, "strict_min": _is_flag, "strict_max": _is_flag}


_COLUMN: Mapping[str, Test] = {"column": _is_text}
_MOSTLY: Mapping[str, Test] = {"mostly": lambda value: _is_number(value) and 0 <= value <= 1}
ARGUMENTS: Mapping[str, tuple[Mapping[str, Test], Mapping[str, Test]]] = {
    "expect_column_values_to_not_be_null": (_COLUMN, _MOSTLY),
    "expect_column_values_to_be_null": (_COLUMN, _MOSTLY),
    "expect_column_values_to_be_unique": (_COLUMN, _MOSTLY),
    "expect_column_values_to_be_between": (_COLUMN, {**_between(_is_number), **_MOSTLY}),
    "expect_column_value_lengths_to_be_between": (_COLUMN, {**_between(_is_whole), **_MOSTLY}),
    "expect_column_values_to_be_in_set": ({**_COLUMN, "value_set": _are_values}, _MOSTLY),
    "expect_column_values_to_not_be_in_set": ({**_COLUMN, "value_set": _are_values}, _MOSTLY),
    "expect_column_values_to_match_regex": ({**_COLUMN, "regex": _is_text}, _MOSTLY),
    "expect_column_values_to_not_match_regex": ({**_COLUMN, "regex": _is_text}, _MOSTLY),
    "expect_compound_columns_to_be_unique": (
        {
            "column_list": lambda value: (
                isinstance(value, list) and len(value) > 1 and all(map(_is_text, value))
            )
        },
        _MOSTLY,
    ),
    "expect_column_min_to_be_between": (_COLUMN, _between(_is_number)),
    "expect_column_max_to_be_between": (_COLUMN, _between(_is_number)),
    "expect_column_sum_to_be_between": (_COLUMN, _between(_is_number)),
    "expect_column_mean_to_be_between": (_COLUMN, _between(_is_number)),
    "expect_table_row_count_to_be_between": ({}, _between(_is_whole)),
    "expect_table_row_count_to_equal": ({"value": _is_whole}, {}),
}


def _answer(ask: str, expectation: Expectation) -> list[str]:
    """Return the answer of a function of the engine, which is imported if it has to be asked."""
    if not is_installed("quality"):
        return []
    file = cache_folder() / f"expectations-{version('great-expectations')}.json"
    asked = [ask, expectation.type, expectation.kwargs]
    text = json.dumps(asked, sort_keys=True, default=lambda v: f"{type(v).__name__} {v}")
    settled, question = _read_kept(file), hashlib.sha256(text.encode()).hexdigest()
    if question in settled:
        return []
    from sluice.gate import engine

    found: list[str] = getattr(engine, ask)(expectation)
    if not found:
        with suppress(OSError):  # without a writable folder, the next process asks again
            write_whole(file, json.dumps(sorted(settled | {question}), indent=0))
    return found


def _read_kept(file: Path) -> set[str]:
    try:
        return set(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return set()


# Arguments compared with the column's values, if the expectation is about one column.
COMPARED = ("min_value", "max_value", "value_set")
ABOUT_LENGTHS_OR_COUNTS = ("length", "count", "proportion", "mean", "sum", "stdev", "median")
NOW = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)  # any time: it changes no mistake
NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


def mistakes(expectation: Expectation, columns: Mapping[str, str]) -> list[str]:
    """Return every mistake, as text; `columns` are the table's, with Spark types ('' if unknown).

    If `columns` is empty, the table's columns are unknown.
    """
    try:
        expectation = suite.at(expectation, NOW)
    except ValueError as error:
        return [str(error)]
    if expectation.type in suite.COMPARISONS:
        return suite.mistakes_of_comparison(expectation)
    values = list(_values(expectation, columns))
    if not is_plain(expectation) and (problems := _answer("mistakes", expectation)):
        return values or problems
    if problems := refusals(expectation):
        return problems
    return [
        *([] if expectation.type in COMPILERS else _answer("not_on_spark", expectation)),
        *_order(expectation.kwargs),
        *_patterns(expectation.kwargs),
        *_condition(expectation.kwargs.get("row_condition"), columns),
        *values,
    ]


def _order(kwargs: Mapping[str, Any]) -> Iterator[str]:
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    if type(low) is type(high) and low is not None and low > high:
        yield f"min_value {low!r} is greater than max_value {high!r}"


def _patterns(kwargs: Mapping[str, Any]) -> Iterator[str]:
    """Yield regular expressions that Spark would reject."""
    for argument in ("regex", "regex_list"):
        given = kwargs.get(argument)
        for pattern in given if isinstance(given, list | tuple) else [given]:
            if isinstance(pattern, str) and (why := problem(pattern)):
                yield f"{argument}: {why}"


def _condition(condition: Any, columns: Mapping[str, str]) -> Iterator[str]:
    """Yield columns of a row condition that the table lacks, and types that don't fit."""
    if condition is None or not columns:
        return
    expression = Expression.parse(str(condition))
    for column in sorted(expression.reads(columns) - set(columns)):
        yield f"row_condition: {unknown('column', column, columns)}"
    for problem in problems(expression, columns, {}):
        yield f"row_condition: {problem}"
    type_ = infer(expression, columns, {})
    if type_ not in ("", "BOOLEAN"):
        yield f"row_condition: {condition!r} is {type_}; a condition is true or false"


def _values(expectation: Expectation, columns: Mapping[str, str]) -> Iterator[str]:
    """Yield values that Spark could not compare with the column's."""
    column = expectation.kwargs.get("column", "")
    kind = columns.get(column, "").upper()
    if not kind or any(word in expectation.type for word in ABOUT_LENGTHS_OR_COUNTS):
        return
    for argument in COMPARED:
        given = expectation.kwargs.get(argument)
        for value in given if isinstance(given, list | tuple) else [given]:
            if value is not None and not _is_comparable(value, kind):
                yield f"{argument}: {value!r} can't be compared with {column}, which is {kind}"


def _is_comparable(value: Any, kind: str) -> bool:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if kind.startswith(NUMBERS):
        return is_number or (isinstance(value, str) and _reads_as_number(value))
    if kind == "STRING":
        return isinstance(value, str)
    if kind.startswith(("TIMESTAMP", "DATE")):
        return not is_number
    return True


def _reads_as_number(value: str) -> bool:
    try:
        Decimal(value)
    except InvalidOperation:
        return False
    return True
