"""Window functions: of each row, over other rows of its partition.

They are computed for all partitions together, from the places of their rows in one order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter import expressions as E
from sluice.interpreter.expressions.compiling import Bindings, compile_node
from sluice.interpreter.relations import CompiledSortItem, number_rows, sort_rows
from sluice.interpreter.relations.aggregates import (
    AGGREGATES,
    ENDS,
    Frames,
    aggregate_of,
    arguments_of,
)
from sluice.interpreter.values import DOUBLE, INT, Values, common, is_integer
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.column_batch import (
    ArrowColumn,
    ColumnBatch,
    Value,
    column_of,
    concatenate,
    constant,
    null_mask,
    take_rows,
)
from sluice.interpreter.values.numbering import whole_numbers
from sluice.interpreter.values.texts import DAY

MOMENTS = (T.TimestampType, T.TimestampNTZType)
WHOLE_NUMBERS = (T.IntegerType, T.LongType, T.DateType)


@dataclass(frozen=True)
class PartitionOrder:
    """Rows by partition and order. Of each place there: the bounds of its partition and peers."""

    rows: np.ndarray
    firsts: np.ndarray
    ends: np.ndarray
    peers: np.ndarray
    peer_ends: np.ndarray

    @classmethod
    def of(
        cls, batch: ColumnBatch, partition: Sequence[Value], keys: Sequence[CompiledSortItem]
    ) -> "PartitionOrder":
        numbers = number_rows(batch, partition)
        ranks = [numbers, *(rank for key in keys for rank in key.ranks(batch))]
        rows = sort_rows(ranks)
        return cls(
            rows, *_find_spans([numbers[rows]]), *_find_spans([rank[rows] for rank in ranks])
        )

    @property
    def counts(self) -> np.ndarray:
        counts: np.ndarray = self.ends - self.firsts
        return counts

    @property
    def places(self) -> np.ndarray:
        return np.arange(len(self.rows))


def _find_spans(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each place, the first place and the end of those where all columns are equal."""
    count = len(columns[0])
    begins = np.ones(count, bool)
    begins[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    firsts = np.flatnonzero(begins)
    counts = np.diff(firsts, append=count)
    return np.repeat(firsts, counts), np.repeat(firsts + counts, counts)


# From rows in order to the first place and the end of each place's frame.
Framing = Callable[[ColumnBatch, PartitionOrder], tuple[np.ndarray, np.ndarray]]


def framing(frame: E.Frame, keys: Sequence[CompiledSortItem]) -> Framing:
    """Return the frames of a batch's rows."""
    ends = (frame.lower, frame.upper)
    least, most = (b.micros if isinstance(b, E.TimeOffset) else b or 0 for b in ends)
    if None not in ends and least > most:
        raise UnsupportedLocally("a window frame that ends before it begins")
    if not frame.by_rows and not keys:
        raise UnsupportedLocally("a RANGE frame without ORDER BY")
    if frame.by_rows and any(isinstance(bound, E.TimeOffset) for bound in ends):
        raise UnsupportedLocally("a ROWS frame with an interval")
    if frame.by_rows or all(bound in (None, 0) for bound in ends):
        return lambda _batch, order: _by_place(frame, order)
    (key,) = keys
    units = {b.unit if isinstance(b, E.TimeOffset) else "" for b in ends if b}
    if len(units) > 1:
        raise UnsupportedLocally("a window frame whose bounds have different types")
    lower, upper = (_distance(bound, key.value.type) for bound in ends)
    return lambda batch, order: _near(key, batch, order, lower, upper)


def _distance(bound: E.FrameBound, type_: T.DataType) -> int | None:
    """Return a bound in the units of the order's values."""
    match bound:
        case None | 0:
            return bound
        case E.TimeOffset(micros=micros) if isinstance(type_, MOMENTS):
            return micros
        case E.TimeOffset(micros=micros) if isinstance(type_, T.DateType) and micros % DAY == 0:
            return micros // DAY
        case int() if isinstance(type_, WHOLE_NUMBERS):
            return bound
    raise UnsupportedLocally("a RANGE frame with a bound that does not fit its order")


def _near(
    key: CompiledSortItem,
    batch: ColumnBatch,
    order: PartitionOrder,
    lower: int | None,
    upper: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return RANGE frames: rows whose order values are within the bounds; for a null, the nulls."""
    given = take_rows(key.value.run(batch), order.rows)
    known = np.flatnonzero(~null_mask(given))
    values = whole_numbers(column_of(given, key.value.type))[known]
    farthest = max(abs(lower or 0), abs(upper or 0))
    safe = 1 << (62 if isinstance(key.value.type, MOMENTS) else 31)
    if max(int(values.max(initial=0)), -int(values.min(initial=0))) + farthest >= safe:
        raise UnsupportedLocally("a RANGE frame that exceeds the type of its order")
    values = -values if key.descending else values
    distinct, nth = np.unique(values, return_inverse=True)
    partition = order.firsts[known] * (len(distinct) + 1)
    skipped = known - np.arange(len(known))  # nulls before a place; the same in all its partition
    starts, ends = order.peers.copy(), order.peer_ends.copy()
    begin = np.searchsorted(distinct, values + (lower or 0), "left")
    until = np.searchsorted(distinct, values + (upper or 0), "right")
    starts[known] = skipped + np.searchsorted(partition + nth, partition + begin)
    ends[known] = skipped + np.searchsorted(partition + nth, partition + until)
    starts = order.firsts if lower is None else starts
    ends = order.ends if upper is None else ends
    return starts, np.maximum(starts, ends)


def _by_place(frame: E.Frame, order: PartitionOrder) -> tuple[np.ndarray, np.ndarray]:
    first, last = frame.lower, frame.upper
    if not frame.by_rows:
        starts = order.firsts if first is None else order.peers
        return starts, order.ends if last is None else order.peer_ends
    places, starts, ends = order.places, order.firsts, order.ends
    if isinstance(first, int):
        starts = np.clip(places + first, order.firsts, order.ends)
    if isinstance(last, int):
        ends = np.clip(places + last + 1, order.firsts, order.ends)
    return starts, np.maximum(starts, ends)


WHOLE = E.Frame(by_rows=True, lower=None, upper=None)
SO_FAR = E.Frame(by_rows=False, lower=None, upper=0)

# From rows in order to a value for each place there.
Ranker = Callable[[PartitionOrder], np.ndarray]


def _dense_rank(order: PartitionOrder) -> np.ndarray:
    nth = np.cumsum(order.peers == order.places)
    ranks: np.ndarray = nth - nth[order.firsts] + 1
    return ranks


SHIFTS = ("lag", "lead")
# Those that Spark lets ignore nulls.
OF_KNOWN = frozenset({*SHIFTS, *ENDS, "collect_list", "array_agg"})
RANKERS: Mapping[str, tuple[Any, Ranker]] = {
    "row_number": (INT, lambda order: order.places - order.firsts + 1),
    "rank": (INT, lambda order: order.peers - order.firsts + 1),
    "dense_rank": (INT, _dense_rank),
    "percent_rank": (
        DOUBLE,
        lambda order: (order.peers - order.firsts) / np.maximum(order.counts - 1, 1),
    ),
    "cume_dist": (DOUBLE, lambda order: (order.peer_ends - order.firsts) / order.counts),
}

# From a batch and its rows in order, and the place of each row there, to the rows' values.
OverRows = Callable[[ColumnBatch, PartitionOrder, np.ndarray], Values]


def compile_over(node: E.WindowFunction, bindings: Bindings) -> Value:
    """Return a window function over all rows of a batch."""
    if not isinstance(node.function, E.FunctionCall):
        raise UnsupportedLocally("a window function that is not a function call")
    partition = [compile_node(p, bindings) for p in node.partition]
    keys = [CompiledSortItem.of(o, bindings) for o in node.order]
    type_, compute = _function(node, node.function, keys, bindings)

    def run(batch: ColumnBatch) -> Values:
        order = PartitionOrder.of(batch, partition, keys)
        place = np.empty_like(order.rows)
        place[order.rows] = order.places
        return compute(batch, order, place)

    return Value(type_, run)


def _check(node: E.WindowFunction, call: E.FunctionCall) -> None:
    """Raise UnsupportedLocally for what Spark refuses in a window."""
    if call.is_distinct or call.where or (node.ignores_nulls and call.name not in OF_KNOWN):
        raise UnsupportedLocally(
            f"the window function {call.name} with DISTINCT, FILTER or IGNORE NULLS"
        )
    if call.name in (*RANKERS, *SHIFTS) and (node.frame or not node.order):
        raise UnsupportedLocally(f"{call.name} without ORDER BY, or with a frame")
    if call.name in RANKERS and call.arguments:
        raise UnsupportedLocally(f"{call.name} with an argument")


def _function(
    node: E.WindowFunction,
    call: E.FunctionCall,
    keys: Sequence[CompiledSortItem],
    bindings: Bindings,
) -> tuple[Any, OverRows]:
    _check(node, call)
    if call.name in RANKERS:
        type_, ranker = RANKERS[call.name]
        to = pa.float64() if type_ == DOUBLE else pa.int32()
        return type_, lambda _, order, place: ArrowColumn(
            pa.array(ranker(order)[place]).cast(to), type_
        )
    if call.name in SHIFTS:
        return _compile_shift(call, bindings, ignores_nulls=node.ignores_nulls)
    if call.name not in AGGREGATES or call.name == "approx_count_distinct":
        raise UnsupportedLocally(f"the window function {call.name}")
    arguments = [compile_node(a, bindings) for a in arguments_of(call)]
    type_, fold, taken = aggregate_of(call.name, arguments, is_distinct=False)
    bounds = framing(node.frame or (SO_FAR if node.order else WHOLE), keys)

    def compute(batch: ColumnBatch, order: PartitionOrder, place: np.ndarray) -> Values:
        columns = [a.run(batch) for a in taken]
        firsts, ends = bounds(batch, order)
        frames = Frames(order.rows, firsts[place], ends[place])
        if node.ignores_nulls:
            frames = frames.keep(~null_mask(columns[0]))
        return fold(columns, frames)

    return type_, compute


def _compile_shift(
    call: E.FunctionCall, bindings: Bindings, *, ignores_nulls: bool
) -> tuple[Any, OverRows]:
    value, *more = (compile_node(a, bindings) for a in call.arguments)
    by = more[0] if more else constant(1, INT)
    if not isinstance(by.literal, int) or by.type != INT or len(more) > 2:
        raise UnsupportedLocally(f"{call.name} with an offset that is not a constant INT")
    step = -by.literal if call.name == "lag" else by.literal
    default = more[1] if len(more) > 1 and more[1].literal is not None else None
    type_ = value.type
    if (
        default
        and not (
            isinstance(type_, T.DecimalType) and default.is_literal and is_integer(default.type)
        )
        and common([type_, default.type]) != type_
    ):
        raise UnsupportedLocally(f"{call.name} with a default of a different type")
    if ignores_nulls and not step:
        raise UnsupportedLocally(f"{call.name} with offset 0 and IGNORE NULLS")
    default = cast(default, type_) if default else None

    def compute(batch: ColumnBatch, order: PartitionOrder, place: np.ndarray) -> Values:
        values = value.run(batch)
        at = order.places + step
        if ignores_nulls:
            known = np.flatnonzero(~null_mask(values)[order.rows])
            nth = np.searchsorted(known, order.places, "right" if step > 0 else "left")
            nth += step - (step > 0)
            is_known = (nth >= 0) & (nth < len(known))
            at = np.full(len(at), -1)
            at[is_known] = known[nth[is_known]]
        is_within = (at >= order.firsts) & (at < order.ends)
        rows = np.full(len(at), -1)
        rows[is_within] = order.rows[at[is_within]]
        if default:
            rows[~is_within] = len(rows) + order.rows[~is_within]
            values = concatenate([values, default.run(batch)], type_)
        return take_rows(values, rows[place])

    return type_, compute
