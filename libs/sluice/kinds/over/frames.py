"""Frames of windows: `ROWS 6 PRECEDING`, `RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND CURRENT ROW`.

A RANGE with a distance includes the rows whose order value is within that distance.
"""

import math
from typing import Any

from sqlglot import exp

from sluice.kinds.over.functions import MOST
from sluice.language import syntax
from sluice.language.expression import Expression

# Lengths of interval units, to compare two bounds.
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_UNITS = {**_SECONDS, "month": 2_629_746, "year": 31_556_952}


def frame_of(spec: Any, text: str) -> tuple[str, tuple[Expression, ...]]:
    """Return a window's frame in SQL, and the distances of a RANGE. Raises ValueError for a
    mistake.
    """
    if spec is None:
        return "", ()
    kind = str(spec.args.get("kind")).upper()
    known = ("kind", "start", "start_side", "end", "end_side")
    others = [name.upper() for name, value in spec.args.items() if value and name not in known]
    if others or kind not in ("ROWS", "RANGE"):
        what = ", ".join(others) or kind
        raise ValueError(f"{text!r}: a frame is of ROWS or RANGE; {what} is not allowed")
    ends = [_bound(spec, which, text, kind) for which in ("start", "end")]
    (first, start), (last, end) = ends
    if first > last or first == math.inf or last == -math.inf:
        raise ValueError(f"{text!r}: the frame ends before it begins")
    distances = [spec.args[which] for which in ("start", "end") if _is_distance(spec, which)]
    if kind == "RANGE" and len(set(map(_unit, distances))) > 1:
        raise ValueError(f"{text!r}: write both bounds of a RANGE in one unit, as Spark wants them")
    frame = f"{kind} BETWEEN {start} AND {end}"
    return frame, tuple(map(Expression.of, distances)) if kind == "RANGE" else ()


def _is_distance(spec: exp.Expression, which: str) -> bool:
    return isinstance(spec.args.get(which), exp.Literal | exp.Interval)


def _unit(value: syntax.Tree) -> str:
    """Return the unit of a distance; weeks are days."""
    if isinstance(value, exp.Interval):
        return str(value.args["unit"].name.lower().removesuffix("s").replace("week", "day"))
    return "whole" if value.name.isdigit() else "fraction"


def _bound(spec: exp.Expression, which: str, text: str, kind: str) -> tuple[float, str]:
    """Return a frame's bound: its distance from the row, and in SQL."""
    value, side = spec.args.get(which), str(spec.args.get(f"{which}_side")).upper()
    sign = -1 if side == "PRECEDING" else 1
    if value is None or str(value).upper() == "CURRENT ROW":
        return 0, "CURRENT ROW"
    if str(value).upper() == "UNBOUNDED":
        return sign * math.inf, f"UNBOUNDED {side}"
    distance = _rows(value) if kind == "ROWS" else _distance(value)
    if distance is None:
        what = (
            "not a number of rows" if kind == "ROWS" else "neither a number nor INTERVAL '7' DAYS"
        )
        raise ValueError(f"{text!r}: {syntax.render(value)} is {what}")
    return sign * distance, f"{syntax.render(value)} {side}"


def _rows(value: syntax.Tree) -> int | None:
    is_whole = isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit()
    return int(value.name) if is_whole and int(value.name) <= MOST else None


def _distance(value: syntax.Tree) -> float | None:
    if isinstance(value, exp.Literal) and not value.is_string:
        syntax.check(value)
        return float(value.name)
    if not isinstance(value, exp.Interval) or not isinstance(value.args.get("unit"), exp.Var):
        return None
    unit = value.args["unit"].name.lower().removesuffix("s")
    number = value.this.name if isinstance(value.this, exp.Literal) else ""
    return int(number) * _UNITS[unit] if number.isdigit() and unit in _UNITS else None
