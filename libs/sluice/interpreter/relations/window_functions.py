"""Window functions: of each row, over other rows of its partition."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from operator import add
from typing import Any

import numpy as np
from pyspark.sql import types as T
from pyspark.sql.types import DecimalType

from sluice.interpreter.expressions.compiling import Bindings, compile_node
from sluice.interpreter.expressions.expression_tree import (
    Frame,
    FrameBound,
    FunctionCall,
    TimeOffset,
    WindowFunction,
)
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.relations.grouping import (
    AGGREGATES,
    ENDS,
    Fold,
    Mean,
    aggregate_of,
    arguments_of,
)
from sluice.interpreter.relations.relation import CompiledSortItem, group_rows, in_order
from sluice.interpreter.values.arrow_conversion import Values
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.column_batch import ColumnBatch, Value, constant
from sluice.interpreter.values.value_types import DOUBLE, INT, common, is_integer
from sluice.interpreter.values.zones import DAY

MOMENTS = (T.TimestampType, T.TimestampNTZType)
WHOLE_NUMBERS = (T.IntegerType, T.LongType, T.DateType)

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
        case int() if isinstance(type_, WHOLE_NUMBERS):
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


MOST_STEPS = 5_000_000
MOST_ADDITIONS = 500_000_000
EXACT = 2.0**53  # below it, DOUBLE holds every whole number
WHOLE = Frame(by_rows=True, lower=None, upper=None)
SO_FAR = Frame(by_rows=False, lower=None, upper=0)

# Rows of a partition in order, and the start of each one's peers.
Ranker = Callable[[Sequence[int], Sequence[int]], list[Any]]


def _row_number(rows: Sequence[int], _peers: Sequence[int]) -> list[Any]:
    return list(range(1, len(rows) + 1))


def _rank(_rows: Sequence[int], peers: Sequence[int]) -> list[Any]:
    return [first + 1 for first in peers]


def _dense_rank(_rows: Sequence[int], peers: Sequence[int]) -> list[Any]:
    places = {first: i for i, first in enumerate(dict.fromkeys(peers), 1)}
    return [places[first] for first in peers]


def _percent_rank(rows: Sequence[int], peers: Sequence[int]) -> list[Any]:
    return [first / (len(rows) - 1) if len(rows) > 1 else 0.0 for first in peers]


def _cume_dist(rows: Sequence[int], peers: Sequence[int]) -> list[Any]:
    ends = ends_of(peers)
    return [end / len(rows) for end in ends]


SHIFTS = ("lag", "lead")
# Aggregates of which the folds of parts can be folded together.
JOINED = frozenset({"sum", "count", "min", "max", "count_if", "bool_or", "bool_and"})
MEANS = frozenset({"avg", "mean"})
# Those that Spark lets ignore nulls.
OF_KNOWN = frozenset({*SHIFTS, *ENDS, "collect_list", "array_agg"})
RANKERS: Mapping[str, tuple[Any, Ranker]] = {
    "row_number": (INT, _row_number),
    "rank": (INT, _rank),
    "dense_rank": (INT, _dense_rank),
    "percent_rank": (DOUBLE, _percent_rank),
    "cume_dist": (DOUBLE, _cume_dist),
}


def compile_over(node: WindowFunction, bindings: Bindings) -> Value:
    """Return a window function over all rows of a batch."""
    if not isinstance(node.function, FunctionCall):
        raise NotHere("a window function that is not a function call")
    partition = [compile_node(p, bindings) for p in node.partition]
    keys = [CompiledSortItem.of(o, bindings) for o in node.order]
    type_, compute = _function(node, node.function, keys, bindings)

    def run(batch: ColumnBatch) -> Values:
        places = [key.places(batch) for key in keys]
        state = compute(batch)
        found: list[Any] = [None] * batch.count
        for group in group_rows(batch, partition).values():
            rows = in_order(group, places, keys) if len(group) > 1 else group
            for row, value in zip(rows, state(rows, _peers(rows, places)), strict=True):
                found[row] = value
        return found

    return Value(type_, run)


def _peers(rows: Sequence[int], places: Sequence[list[Any]]) -> list[int]:
    """Return, for each place in the order, the first one with the same sort keys."""
    if len(rows) == 1:
        return [0]
    firsts: list[int] = []
    last: Any = None
    for at, row in enumerate(rows):
        key = tuple(place[row] for place in places)
        firsts.append(firsts[-1] if at and key == last else at)
        last = key
    return firsts


def _check(node: WindowFunction, call: FunctionCall) -> None:
    """Raise NotHere for what Spark refuses in a window."""
    if call.is_distinct or call.where or (node.ignores_nulls and call.name not in OF_KNOWN):
        raise NotHere(f"the window function {call.name} with DISTINCT, FILTER or IGNORE NULLS")
    if call.name in (*RANKERS, *SHIFTS) and (node.frame or not node.order):
        raise NotHere(f"{call.name} without ORDER BY, or with a frame")
    if call.name in RANKERS and call.arguments:
        raise NotHere(f"{call.name} with an argument")


def _function(
    node: WindowFunction, call: FunctionCall, keys: Sequence[CompiledSortItem], bindings: Bindings
) -> tuple[Any, Callable[[ColumnBatch], Ranker]]:
    _check(node, call)
    if call.name in RANKERS:
        type_, ranker = RANKERS[call.name]
        return type_, lambda _: ranker
    if call.name in SHIFTS:
        return _compile_shift(call, bindings, ignores_nulls=node.ignores_nulls)
    if call.name not in AGGREGATES or call.name == "approx_count_distinct":
        raise NotHere(f"the window function {call.name}")
    arguments = [compile_node(a, bindings) for a in arguments_of(call)]
    type_, fold, taken = aggregate_of(call.name, arguments, is_distinct=False)
    frame = node.frame or (SO_FAR if node.order else WHOLE)
    frames = framing(frame, keys)
    folded = _of_known(fold) if node.ignores_nulls else fold

    def compute(batch: ColumnBatch) -> Ranker:
        columns, bounds = [a.run(batch) for a in taken], frames(batch)

        def ranker(rows: Sequence[int], peers: Sequence[int]) -> list[Any]:
            values = [tuple(column[row] for column in columns) for row in rows]
            if len(values) == 1 and frame in (SO_FAR, WHOLE):
                return [folded(values)]
            return fold_frames(folded, values, bounds(rows, peers))

        return ranker

    fold_frames = _way(call.name, frame, type_)
    return type_, compute


def _way(name: str, frame: Frame, type_: Any) -> Callable[..., list[Any]]:
    """Return the function that folds frames, the cheapest one that adds DOUBLE as Spark does."""
    if name in MEANS:
        return partial(_average, _way("sum", frame, type_))
    if name not in JOINED:
        return _fold_frames
    if frame.lower is None:
        return _running
    return _add_fractions if (name, type_) == ("sum", DOUBLE) else _sliding


def _of_known(fold: Fold) -> Fold:
    return lambda rows: fold([row for row in rows if row[0] is not None])


def _fold_frames(fold: Fold, values: list[Any], bounds: FrameBounds) -> list[Any]:
    if sum(b - a for a, b in set(bounds)) > MOST_STEPS:
        raise NotHere("window frames with too many rows")
    known = {bound: fold(values[bound[0] : bound[1]]) for bound in set(bounds)}
    return [known[bound] for bound in bounds]


def _running(fold: Fold, values: list[Any], bounds: FrameBounds) -> list[Any]:
    """Fold growing prefixes: each continues the fold of the one before."""
    found = [fold([]), *accumulate((fold([value]) for value in values), _joining(fold))]
    return [found[end] for _, end in bounds]


def _sliding(fold: Fold, values: list[Any], bounds: FrameBounds) -> list[Any]:
    """Fold frames whose ends only move on, with few folds of two for each row.

    A frame is the rest of an earlier one, whose rests are all known, and the rows behind that.
    """
    if any(a > c or b > d for (a, b), (c, d) in pairwise(bounds)):
        return _fold_frames(fold, values, bounds)
    fold(values)  # a sum that overflows in some order of its rows is left to Spark
    join, nothing = _joining(fold), fold([])
    parts, rests = [fold([value]) for value in values], [nothing] * (len(values) + 1)
    middle, end, behind = 0, 0, nothing
    found = []
    for first, last in bounds:
        if first >= middle:
            middle = end = last
            rests[last] = behind = nothing
            for at in range(last - 1, first - 1, -1):
                rests[at] = join(parts[at], rests[at + 1])
        for at in range(end, last):
            behind = join(behind, parts[at])
        end = last
        found.append(join(rests[first], behind))
    return found


def _average(
    add_up: Callable[..., list[Any]], mean: Mean, values: list[Any], bounds: FrameBounds
) -> list[Any]:
    totals = add_up(mean.total, values, bounds)
    known = [0, *accumulate(value is not None for (value,) in values)]
    return [
        None if total is None else mean.divide(total, known[end] - known[first])
        for total, (first, end) in zip(totals, bounds, strict=True)
    ]


def _add_fractions(_fold: Fold, values: list[Any], bounds: FrameBounds) -> list[Any]:
    """Add each frame's values from the first to the last, the nth ones of all frames at once.

    Whole numbers that stay exact in any order are added once, for all frames together.
    """
    known = np.cumsum([0, *(value is not None for (value,) in values)])
    given = np.array([value for (value,) in values if value is not None], float)
    firsts, ends = known[np.array(bounds)].T
    with np.errstate(all="ignore"):
        if len(given) * np.abs(given).max(initial=0) < EXACT and (given == np.rint(given)).all():
            sums = np.cumsum([0.0, *given])
            found = sums[ends] - sums[firsts]
        else:
            found = _add_in_order(given, firsts, ends - firsts)
    nulls = firsts == ends
    return [None if null else total for null, total in zip(nulls, found.tolist(), strict=True)]


def _add_in_order(given: np.ndarray, firsts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the sums of so many values from each first one on."""
    if counts.sum() > MOST_ADDITIONS:
        raise NotHere("window frames with too many fractions")
    longest_first = np.argsort(-counts, kind="stable")
    starts, sums = firsts[longest_first], np.zeros(len(firsts))
    more = len(counts) - np.searchsorted(np.sort(counts), np.arange(counts.max()), side="right")
    for nth, frames in enumerate(more):
        sums[:frames] += given[starts[:frames] + nth]
    found = np.empty_like(sums)
    found[longest_first] = sums
    return found


def _joining(fold: Fold) -> Callable[[Any, Any], Any]:
    """Return the function of the folds of two parts to that of both."""
    if fold([]) == 0:
        return add  # of counts

    def join(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return fold([(a,), (b,)])

    return join


def _compile_shift(
    call: FunctionCall, bindings: Bindings, *, ignores_nulls: bool
) -> tuple[Any, Callable[[ColumnBatch], Ranker]]:
    """Return lag or lead."""
    value, *more = (compile_node(a, bindings) for a in call.arguments)
    by = more[0] if more else constant(1, INT)
    if not isinstance(by.literal, int) or by.type != INT or len(more) > 2:
        raise NotHere(f"{call.name} with an offset that is not a constant INT")
    step = -by.literal if call.name == "lag" else by.literal
    default = more[1] if len(more) > 1 and more[1].literal is not None else None
    type_ = value.type
    if default and common([type_, default.type]) != type_ and not _is_few_digits(default, type_):
        raise NotHere(f"{call.name} with a default of a different type")
    if ignores_nulls and not step:
        raise NotHere(f"{call.name} with offset 0 and IGNORE NULLS")
    default = cast(default, type_) if default else None

    def compute(batch: ColumnBatch) -> Ranker:
        values, others = value.run(batch), default.run(batch) if default else None

        def ranker(rows: Sequence[int], _peers: Sequence[int]) -> list[Any]:
            places = _known_places([values[row] for row in rows], step) if ignores_nulls else None
            return [
                values[rows[at]]
                if 0 <= (at := places[i] if places else i + step) < len(rows)
                else (others[row] if others else None)
                for i, row in enumerate(rows)
            ]

        return ranker

    return type_, compute


def _is_few_digits(value: Value, type_: Any) -> bool:
    """Return whether it is an integer constant to be converted to a decimal."""
    return isinstance(type_, DecimalType) and value.is_literal and is_integer(value.type)


def _known_places(values: Values, step: int) -> list[int]:
    """Return, for each row, the place of the row so many known values away; -1 if there is none."""
    known = [i for i, value in enumerate(values) if value is not None]
    found = []
    for i in range(len(values)):
        at = (bisect_right(known, i) - 1 if step > 0 else bisect_left(known, i)) + step
        found.append(known[at] if 0 <= at < len(known) else -1)
    return found
