"""Constant intervals of SQL: a number and a unit, or a text with several, such as DAY TO SECOND."""

import re

from pyspark.sql import types as T
from sqlglot import exp

from sluice.interpreter.expressions.expression_tree import Literal
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.zones import DAY, UNITS

_NUMBER = re.compile(r"([+-]?)(\d+)(?:\.(\d{1,9}))?", re.ASCII)
_MONTHS = {"year": 12, "month": 1}
_MICROS = {**UNITS, "day": DAY, "week": 7 * DAY}
_FIELDS = ("day", "hour", "minute", "second")  # of INTERVAL DAY TO SECOND; others count as these
_FIELD_OF = {"week": "day", "millisecond": "second", "microsecond": "second"}
_MOST = {"hour": 24, "minute": 60, "second": 60}  # of units that are not the largest


def interval_of(tree: exp.Interval) -> Literal:
    """Return the constant that an interval is. Raises NotHere for another form."""
    unit, written = tree.args.get("unit"), tree.this
    if not isinstance(written, exp.Literal):
        raise NotHere("an interval that is not a constant")
    if isinstance(unit, exp.IntervalSpan):
        return _span(written.name, unit.this.name.lower(), unit.expression.name.lower())
    name = unit.name.lower().removesuffix("s") if isinstance(unit, exp.Var) else ""
    found = _NUMBER.fullmatch(written.name)
    if not found or not (name in _MONTHS or name in _MICROS) or (found[3] and name != "second"):
        raise NotHere("an interval with an unsupported unit or number")
    if name in _MONTHS:
        return _months(int(found[1] + found[2]) * _MONTHS[name], name, name)
    field = _FIELD_OF.get(name, name)
    return _micros(int(found[2]) * _MICROS[name], found[3], found[1], field, field)


def _span(text: str, first: str, last: str) -> Literal:
    if (first, last) == ("year", "month"):
        found = re.fullmatch(r"([+-]?)(\d+)-(\d{1,2})", text, re.ASCII)
        if not found or int(found[3]) >= 12:
            raise NotHere("an interval of an unsupported form")
        months = int(found[2]) * 12 + int(found[3])
        return _months(-months if found[1] == "-" else months, first, last)
    if first not in _FIELDS or last not in _FIELDS[_FIELDS.index(first) + 1 :]:
        raise NotHere("an interval with unsupported units")
    names = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
    rest = ":".join(rf"(?P<{name}>\d{{1,2}})" for name in names[1:])
    form = rf"(?P<{first}>\d+){' ' if first == 'day' else ':'}{rest}"
    fraction = r"(?:\.(?P<fraction>\d{1,9}))?" if last == "second" else ""
    found = re.fullmatch(f"(?P<sign>[+-]?){form}{fraction}", text, re.ASCII)
    if not found or any(int(found[name]) >= _MOST[name] for name in names[1:]):
        raise NotHere("an interval of an unsupported form")
    micros = sum(int(found[name]) * _MICROS[name] for name in names)
    return _micros(micros, found.groupdict().get("fraction"), found["sign"], first, last)


def _months(months: int, first: str, last: str) -> Literal:
    fields = [[*_MONTHS].index(name) for name in (first, last)]
    if not -(2**31) <= months < 2**31:
        raise NotHere("an interval of too many months")
    return Literal(months, T.YearMonthIntervalType(*fields))


def _micros(micros: int, fraction: str | None, sign: str, first: str, last: str) -> Literal:
    """Return an interval with a fraction of a second, cut to microseconds."""
    micros += int((fraction or "")[:6].ljust(6, "0"))
    if micros >= 2**63:
        raise NotHere("an interval of too many microseconds")
    fields = (_FIELDS.index(first), _FIELDS.index(last))
    return Literal(-micros if sign == "-" else micros, T.DayTimeIntervalType(*fields))
