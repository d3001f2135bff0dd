"""Dates and times by a pattern, as Spark reads them with the formatters of `java.time`.

A pattern has fields from the year downwards, without a gap, and signs or quoted letters between
them. Numbers between signs have any length. Letters match in any case. Other patterns are left to
Spark.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache, partial

from pyspark.sql import types as T

from sluice.interpreter.functions.strings import only_text
from sluice.interpreter.refusals import BadValue, NotHere
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.column_batch import Value, each
from sluice.interpreter.values.value_types import DATE, NTZ, TIMESTAMP
from sluice.interpreter.values.zones import DAY, FIRST_DAY

_TYPES = {
    "v DATE": (DATE, "dateFormat"),
    "v TIMESTAMP": (TIMESTAMP, "timestampFormat"),
    "v TIMESTAMP_NTZ": (NTZ, "timestampNTZFormat"),
}
_CELL = re.compile('"((?:[^"]|"")+)"')
_PART = re.compile(r"'([A-Za-z .,:;/_()+-]+)'|(([A-Za-z])\3*)|([ .,:;/_()+-])")
_DIGITS = {
    "yyyy": "[0-9]{4}|[+-][0-9]{4,}",
    **{2 * letter: "[0-9]{2}" for letter in "MdHms"},
    **dict.fromkeys("MdHms", "[0-9]{1,19}"),
    **{places * "S": f"[0-9]{{1,{places}}}" for places in range(1, 7)},
}
_ORDERS = ("yMd", "HmsS")
_CLOCK = {"H": (24, 3_600_000_000), "m": (60, 60_000_000), "s": (60, 1_000_000)}


def _from_csv(arguments: list[Value]) -> Value:
    cell, schema, options = arguments
    type_, name = _TYPES.get(str(schema.literal), (None, ""))
    given = dict(options.literal) if isinstance(options.literal, tuple) else {}
    pattern = given.pop(name, None)
    if type_ is None or not isinstance(pattern, str) or given != {"escape": '"'}:
        raise NotHere("from_csv, other than for one date or timestamp with a pattern")
    layout = _layout(pattern)

    def read(v: str) -> tuple[int | None]:
        found = _CELL.fullmatch(v)
        if not (found and v.isascii() and v.isprintable()):
            raise NotHere("from_csv of a string that is not one quoted value of printable ASCII")
        moment = _moment(layout, found[1])
        return (moment // DAY if moment is not None and type_ == DATE else moment,)

    return each(T.StructType().add("v", type_), read, only_text(cell))


def _read(type_: T.DataType, arguments: list[Value], *, is_try: bool = False) -> Value:
    """Return a date or a time of a text, perhaps by a pattern; null if it has another form."""
    value, *pattern = arguments
    if not pattern:
        if is_try:
            raise NotHere("try_to_timestamp without a pattern")
        return cast(value, type_)
    if not (isinstance(value.type, T.StringType) and isinstance(pattern[0].literal, str)):
        raise NotHere("a date or a time by a pattern, of a value that is not a STRING")
    written, size = pattern[0].literal, DAY if type_ == DATE else 1
    layout = _layout(written)

    def read(v: str) -> int | None:
        if not (v.isascii() and v.isprintable()):
            raise NotHere("a date or a time with other characters than printable ASCII")
        moment = _moment(layout, v)
        if moment is None and not is_try:
            raise BadValue(f"the string {v!r} by the pattern {written!r}")
        return moment if moment is None else moment // size

    return each(type_, read, value)


@lru_cache
def _layout(pattern: str) -> re.Pattern[str]:
    """Return the pattern as a regular expression. Raises NotHere for a pattern left to Spark."""
    parts, letters, before, at = "", "", "", 0
    while at < len(pattern):
        found = _PART.match(pattern, at)
        if not found:
            raise NotHere(f"the pattern {pattern!r}")
        quoted, field, letter, sign = found.groups()
        if field and (field not in _DIGITS or _run_together(before, field) or letter in letters):
            raise NotHere(f"the pattern {pattern!r}")
        parts += f"(?P<{letter}>{_DIGITS[field]})" if field else re.escape(quoted or sign)
        letters, before, at = letters + (letter or ""), field or "", found.end()
    if not all(order.startswith("".join(c for c in order if c in letters)) for order in _ORDERS):
        raise NotHere(f"the pattern {pattern!r}")
    return re.compile(parts, re.ASCII | re.IGNORECASE)


def _run_together(before: str, field: str) -> bool:
    """Return whether only Java decides where one number ends and the next begins."""
    return bool(before) and any(len(f) == 1 or "S" in f for f in (before, field))


def _moment(layout: re.Pattern[str], written: str) -> int | None:
    """Return a text's microseconds since 1970; null if there is no such day or time."""
    found = layout.fullmatch(written)
    if not found:
        return None
    given = found.groupdict()
    year = given.get("y", "")
    if not year.isdigit() or year == "0000":
        raise NotHere(f"the year {year!r}")
    try:
        day = date(int(year), int(given.get("M", 1)), int(given.get("d", 1)))
    except (ValueError, OverflowError):
        return None
    moment = (day.toordinal() - FIRST_DAY) * DAY + int(given.get("S", "").ljust(6, "0"))
    for letter, (most, size) in _CLOCK.items():
        if (value := int(given.get(letter, 0))) >= most:
            return None
        moment += value * size
    return moment


TIME_PATTERNS: Mapping[str, Callable[[list[Value]], Value]] = {
    "from_csv": _from_csv,
    "to_date": partial(_read, DATE),
    "to_timestamp": partial(_read, TIMESTAMP),
    "to_timestamp_ntz": partial(_read, NTZ),
    "try_to_timestamp": partial(_read, TIMESTAMP, is_try=True),
}
