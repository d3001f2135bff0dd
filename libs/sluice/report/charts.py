"""Geometry of the report's small pictures; the templates only draw it.

A strip is one cell per check; both height and colour show the state. Bars are rows per interval,
accepted below and quarantined on top, where even a single quarantined row is visible. A curve shows
the numbers that one expectation observed.
"""

from collections.abc import Sequence

from sluice.language.row import Row
from sluice.pages.elements import Box, Picture
from sluice.pages.wording import moment
from sluice.report.checks import Check, ExpectationSummary, State

COUNTS = ("read", "accepted", "quarantined")
CELL, GAP, STRIP_HEIGHT = 7, 2, 22
BAR_HEIGHT, LEAST_SEEN, MARK = 84, 2.5, 6
CELL_HEIGHTS = {
    State.PASSED: 10,
    State.QUARANTINED: 16,
    State.WARNED: 16,
    State.STOPPED: STRIP_HEIGHT,
}


def strip(checks: Sequence[Check], shown: int, label: str = "") -> Picture:
    """Return the last `shown` checks, oldest first, the newest at the right edge."""
    last = checks[-shown:]
    first = shown - len(last)
    boxes = [_cell(first + i, check) for i, check in enumerate(last)]
    return Picture(label, shown * (CELL + GAP) - GAP, STRIP_HEIGHT, boxes)


def _cell(nth: int, check: Check) -> Box:
    height = CELL_HEIGHTS[check.state]
    return _box(nth * (CELL + GAP), STRIP_HEIGHT - height, CELL, height, check)


def _box(x: float, y: float, width: float, height: float, check: Check) -> Box:
    return Box(x, y, width, height, check.state.look, f"{check.when}: {check.observed}")


def bars(
    intervals: Sequence[Row],
    width: float = 720,
    height: float = BAR_HEIGHT,
    label: str = "",
    below: Sequence[str] = (),
) -> Picture:
    """Return the rows per interval as bars, scaled to the largest."""
    most = max((i["rows_read"] for i in intervals), default=0) or 1
    step = min(width / max(len(intervals), 1), 44)
    boxes = [
        box
        for nth, interval in enumerate(intervals)
        for box in _bar(nth * step, step * 0.78, interval, height / most, height)
    ]
    return Picture(label, round(step * len(intervals), 1), height, boxes, below=below)


def _bar(x: float, width: float, interval: Row, scale: float, height: float) -> list[Box]:
    read, accepted, apart = (interval[f"rows_{name}"] for name in COUNTS)
    bad = min(max(apart * scale, LEAST_SEEN), height) if apart else 0.0
    good = min(accepted * scale, height - bad)
    when = moment(interval["interval_start"])
    title = f"{when}: {read:,} read, {accepted:,} accepted, {apart:,} quarantined"
    parts = [
        (height - good, good, "bar"),
        (height - good - bad, bad, "quarantined"),
    ]
    left, wide = round(x, 1), round(width, 1)
    return [Box(left, round(y, 1), wide, round(h, 1), look, title) for y, h, look in parts if h > 0]


def curve(of: ExpectationSummary, height: float = 46) -> Picture:
    """Return the curve of observed numbers, each below its cell of the strip, in full height.

    A check without a number interrupts it. The newest check is a square, and so is each that needs
    attention.
    """
    numbers = [check.number for check in of.checks if check.number is not None]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    step, scale = CELL + GAP, (height - 2 * MARK) / ((high - low) or 1)
    path, marks, before = "", [], False
    for nth, check in enumerate(of.checks):
        if check.number is not None:
            x, y = nth * step + CELL / 2, round(height - MARK - (check.number - low) * scale, 1)
            path += f"{'L' if before else 'M'}{x} {y}"
            if check.state is not State.PASSED or check is of.latest:
                marks.append(_box(x - MARK / 2, y - MARK / 2, MARK, MARK, check))
        before = check.number is not None
    ends = f"{figure(low)} to {figure(high)} {of.unit}"
    width = len(of.checks) * step - GAP
    return Picture(f"observed: {of.says}", width, height, marks, path, below=[ends])


def figure(number: float) -> str:
    """Return a number for the end of a scale: short, and exact if it is small."""
    return f"{number:,.0f}" if abs(number) >= 1000 or number == int(number) else f"{number:.3g}"
