"""Geometry of the report's small pictures; the templates only draw it.

A strip is one cell per check; both height and colour show the state. Bars are rows per interval,
accepted below and quarantined on top, where even a single quarantined row is visible. A curve shows
the numbers that one expectation observed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sluice.gate.pages.checks import Check, State
from sluice.gate.pages.summary import IntervalCounts

CELL, GAP, STRIP_HEIGHT = 7, 2, 22
BAR_HEIGHT, LEAST_SEEN, MARK = 84, 2.5, 6
CELL_HEIGHTS = {
    State.PASSED: 10,
    State.QUARANTINED: 16,
    State.WARNED: 16,
    State.STOPPED: STRIP_HEIGHT,
}


@dataclass(frozen=True)
class Box:
    """A rectangle with its class and its tooltip."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


@dataclass(frozen=True)
class Picture:
    """Boxes in a drawing of a known size."""

    width: float
    height: float
    boxes: tuple[Box, ...]


def strip(checks: Sequence[Check], shown: int) -> Picture:
    """Return the last `shown` checks, oldest first, the newest at the right edge."""
    last = checks[-shown:]
    first = shown - len(last)
    boxes = tuple(_cell(first + i, check) for i, check in enumerate(last))
    return Picture(shown * (CELL + GAP) - GAP, STRIP_HEIGHT, boxes)


def _cell(nth: int, check: Check) -> Box:
    height = CELL_HEIGHTS[check.state]
    title = f"{check.when}: {check.observed}"
    return Box(nth * (CELL + GAP), STRIP_HEIGHT - height, CELL, height, check.state.name, title)


def bars(
    intervals: Sequence[IntervalCounts], width: float = 720, height: float = BAR_HEIGHT
) -> Picture:
    """Return the rows per interval as bars, scaled to the largest."""
    most = max((i.read for i in intervals), default=0) or 1
    step = min(width / max(len(intervals), 1), 44)
    boxes = [
        box
        for nth, interval in enumerate(intervals)
        for box in _bar(nth * step, step * 0.78, interval, height / most, height)
    ]
    return Picture(round(step * len(intervals), 1), height, tuple(boxes))


def _bar(
    x: float, width: float, interval: IntervalCounts, scale: float, height: float
) -> list[Box]:
    bad = interval.quarantined * scale
    bad = min(max(bad, LEAST_SEEN), height) if interval.quarantined else 0.0
    good = min(interval.accepted * scale, height - bad)
    title = (
        f"{interval.when}: {interval.read:,} read, {interval.accepted:,} accepted,"
        f" {interval.quarantined:,} quarantined"
    )
    low = Box(x, height - good, width, good, "ACCEPTED", title)
    high = Box(x, height - good - bad, width, bad, "QUARANTINED", title)
    return [_rounded(box) for box in (low, high) if box.height > 0]


def _rounded(box: Box) -> Box:
    sides = (round(side, 1) for side in (box.x, box.y, box.width, box.height))
    x, y, width, height = sides
    return Box(x, y, width, height, box.kind, box.title)


@dataclass(frozen=True)
class Curve:
    """A line through the numbers of checks, its ends, and marks at checks that need attention."""

    width: float
    height: float
    line: str  # an SVG path; a check without a number interrupts it
    marks: tuple[Box, ...]
    low: float
    high: float


def curve(checks: Sequence[Check], height: float = 46) -> Curve:
    """Return the curve of observed numbers, each below its cell of the strip, in full height."""
    numbers = [check.number for check in checks if check.number is not None]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    step, scale = CELL + GAP, (height - 2 * MARK) / ((high - low) or 1)
    points = [
        (nth * step + CELL / 2, round(height - MARK - (check.number - low) * scale, 1), check)
        for nth, check in enumerate(checks)
        if check.number is not None
    ]
    marks = (_mark(*p) for p in points if p[2].state is not State.PASSED or p is points[-1])
    return Curve(len(checks) * step - GAP, height, _path(checks, points), tuple(marks), low, high)


def _path(checks: Sequence[Check], points: Sequence[tuple[float, float, Check]]) -> str:
    places = {id(check): (x, y) for x, y, check in points}
    parts, drawing = [], False
    for check in checks:
        if place := places.get(id(check)):
            parts.append(f"{'L' if drawing else 'M'}{place[0]} {place[1]}")
        drawing = place is not None
    return "".join(parts)


def _mark(x: float, y: float, check: Check) -> Box:
    title = f"{check.when}: {check.observed}"
    return Box(x - MARK / 2, y - MARK / 2, MARK, MARK, check.state.name, title)
