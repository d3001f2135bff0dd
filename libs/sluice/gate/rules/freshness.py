"""Freshness: bounds that move with the clock, such as `min_value: now - 36 hours`.

Only expectations over a whole table may have them, because an old batch does not get worse.
"""

import datetime as dt
import re
from typing import Any

from sluice.declare.expectation import Expectation
from sluice.language.duration import Duration

BOUNDS = ("min_value", "max_value")
_NOW = re.compile(r"\s*now\s*(?:([+-])\s*(.+))?", re.IGNORECASE)


def is_moving(value: Any) -> bool:
    """True if a bound moves with the clock."""
    return isinstance(value, str) and _NOW.fullmatch(value) is not None


def at(expectation: Expectation, now: dt.datetime) -> Expectation:
    """Return the expectation with its bounds as they are at `now`, an aware time.

    Raises ValueError for a duration that can't be read, or for an expectation over a batch.
    """
    given = {bound: expectation.kwargs.get(bound) for bound in BOUNDS}
    moving = {bound: str(value) for bound, value in given.items() if is_moving(value)}
    if not moving:
        return expectation
    if expectation.over != "table":
        raise ValueError(f"{next(iter(moving))}: only a rule with over: table may use now")
    fixed = {bound: _moment(value, now).isoformat() for bound, value in moving.items()}
    return expectation.model_copy(update={"kwargs": {**expectation.kwargs, **fixed}})


def _moment(text: str, now: dt.datetime) -> dt.datetime:
    sign, length = _NOW.fullmatch(text).groups()  # type: ignore[union-attr]
    if sign is None:
        return now
    duration = Duration(length.strip())
    return duration.after(now) if sign == "+" else duration.before(now)
