"""Frames of window functions: for each row of a partition, the places of those that it reads."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from pyspark.sql import types as T

from sluice.interpreter.expressions.expression_tree import Frame, FrameBound, TimeOffset
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.relations.sorting import CompiledSortItem
from sluice.interpreter.values.column_batch import ColumnBatch
from sluice.interpreter.values.zones import DAY

MOMENTS = (T.TimestampType, T.TimestampNTZType)
WHOLE = (T.IntegerType, T.LongType, T.DateType)

# From rows in order, and the start of each one's peers, to (first, after the last).
FrameBounds = list[tuple[int, int]]
Framing = Callable[[Sequence[int], Sequence[int]], FrameBounds]


def framing(frame: Frame, keys: Sequence[CompiledSortItem]) -> Callable[[ColumnBatch], Framing]:
    """Return the frames of a batch's rows."""
    ends = (frame.lower, frame.upper)
    if None not in ends and _least(frame.lower) > _least(frame.upper):
        raise NotHere("a window frame that ends before it begins")
    if not frame.by_rows and not keys:
        raise NotHere("a RANGE frame without ORDER BY")
    if frame.by_rows or all(bound in (None, 0) for bound in ends):
        return lambda _: lambda _rows, peers: _by_place(frame, peers)
    (key,) = keys
    units = {b.unit if isinstance(b, TimeOffset) else "" for b in ends if b}
    if len(units) > 1:
        raise NotHere("a window frame whose bounds have different types")
    lower, upper = (_distance(bound, key.value.type) for bound in ends)

    def of(batch: ColumnBatch) -> Framing:
        values = key.value.run(batch)

        def by_value(rows: Sequence[int], peers: Sequence[int]) -> FrameBounds:
            return _near([values[row] for row in rows], peers, lower, upper, key)

        return by_value

    return of


def _least(bound: FrameBound) -> int:
    return bound.micros if isinstance(bound, TimeOffset) else bound or 0


def _distance(bound: FrameBound, type_: T.DataType) -> int | None:
    """Return a bound in the units of the order's values."""
    match bound:
        case None | 0:
            return bound
        case TimeOffset(micros=micros) if isinstance(type_, MOMENTS):
            return micros
        case TimeOffset(micros=micros) if isinstance(type_, T.DateType) and micros % DAY == 0:
            return micros // DAY
        case int() if isinstance(type_, WHOLE):
            return bound
    raise NotHere("a RANGE frame with a bound that does not fit its order")


def _near(
    values: Sequence[int | None],
    peers: Sequence[int],
    lower: int | None,
    upper: int | None,
    key: CompiledSortItem,
) -> FrameBounds:
    """Return the frames by values in order; of null's row, the nulls."""
    sign = -1 if key.descending else 1
    known = [sign * v for v in values if v is not None]
    farthest = max(abs(lower or 0), abs(upper or 0))
    safe = 1 << (62 if isinstance(key.value.type, MOMENTS) else 31)
    if any(abs(v) + farthest >= safe for v in known):
        raise NotHere("a RANGE frame that exceeds the type of its order")
    first = next((i for i, v in enumerate(values) if v is not None), len(values))
    ends = ends_of(peers)
    found: FrameBounds = []
    for i, value in enumerate(values):
        at = None if value is None else sign * value
        start, end = peers[i], ends[i]
        if at is not None:
            start = first + bisect_left(known, at + (lower or 0))
            end = first + bisect_right(known, at + (upper or 0))
        start = 0 if lower is None else start
        end = len(values) if upper is None else end
        found.append((start, max(start, end)))
    return found


def _by_place(frame: Frame, peers: Sequence[int]) -> FrameBounds:
    count = len(peers)
    if not frame.by_rows:
        starts = [0] * count if frame.lower is None else list(peers)
        return list(
            zip(starts, [count] * count if frame.upper is None else ends_of(peers), strict=True)
        )
    first, last = frame.lower, frame.upper
    if isinstance(first, TimeOffset) or isinstance(last, TimeOffset):
        raise NotHere("a ROWS frame with an interval")
    lower = [0 if first is None else min(max(0, i + first), count) for i in range(count)]
    upper = [count if last is None else i + last + 1 for i in range(count)]
    return [(a, max(a, min(b, count))) for a, b in zip(lower, upper, strict=True)]


def ends_of(peers: Sequence[int]) -> list[int]:
    """Return, for each place, the one after the last of its peers."""
    counts: dict[int, int] = {}
    for first in peers:
        counts[first] = counts.get(first, 0) + 1
    return [first + counts[first] for first in peers]
