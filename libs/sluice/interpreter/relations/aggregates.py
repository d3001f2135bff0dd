"""Aggregates: functions of the rows in each of many frames, which are groups or those of windows.

Frames are spans of rows in order, so most aggregates are differences of running totals, or choose
a row of each frame. Sums of DOUBLE depend on the order of their rows in Spark, too; here, rows are
added in their order.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter import expressions as E
from sluice.interpreter.values import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    NULL,
    Values,
    bounds_check,
    fits_in,
    half_up,
    is_integer,
    of_decimal,
    to_arrow,
)
from sluice.interpreter.values.casts import boolean, number
from sluice.interpreter.values.column_batch import (
    ArrowColumn,
    Value,
    column_of,
    constant,
    null_mask,
    take_rows,
    true_mask,
)
from sluice.interpreter.values.numbering import (
    check_distinct,
    combine,
    has_floats,
    key_function,
    normal,
    number_values,
    order_of,
    rank_values,
    whole_numbers,
)
from sluice.language.types import Decimal

MOST_FIRST = 100_000  # rows of min_by and max_by
MOST_STEPS = 5_000_000
MOST_ADDITIONS = 500_000_000
EXACT = 2.0**53  # below it, DOUBLE holds every whole number
FALSE = constant(value=False, type_=BOOLEAN)


@dataclass(frozen=True)
class Frames:
    """Spans of rows in order: a frame is `rows[first:end]`. Groups are all rows in turn."""

    rows: np.ndarray
    firsts: np.ndarray
    ends: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        counts: np.ndarray = self.ends - self.firsts
        return counts

    def keep(self, wanted: np.ndarray) -> "Frames":
        """Return the frames without the rows that are not wanted."""
        kept = wanted[self.rows]
        if kept.all():
            return self
        before = _add_up(kept)
        return Frames(self.rows[kept], before[self.firsts], before[self.ends])

    def distinct(self, numbers: np.ndarray) -> "Frames":
        """Return groups with the first row of each of these numbers."""
        group = np.repeat(np.arange(len(self.firsts)), self.counts)
        keys = group * (numbers.max(initial=0) + 1) + numbers[self.rows]
        wanted = np.zeros(len(numbers), bool)
        wanted[self.rows[np.unique(keys, return_index=True)[1]]] = True
        return self.keep(wanted)

    def rows_at(self, places: np.ndarray) -> np.ndarray:
        """Return the row at a place within each frame; -1 if the frame is empty."""
        found = np.full(len(places), -1)
        found[self.counts > 0] = self.rows[places[self.counts > 0]]
        return found


Fold = Callable[[Sequence[Values], Frames], Values]  # of the arguments' columns
FoldedAggregate = tuple[T.DataType, Fold, list[Value]]


def _add_up(numbers: np.ndarray) -> np.ndarray:
    """Return the total before each place, and at the end."""
    return np.concatenate(([0], np.cumsum(numbers)))


def _known(columns: Sequence[Values], frames: Frames) -> Frames:
    for values in columns:
        frames = frames.keep(~null_mask(values))
    return frames


def _count_known(columns: Sequence[Values], frames: Frames) -> Values:
    return ArrowColumn(pa.array(_known(columns, frames).counts), LONG)


def _count(arguments: list[Value]) -> FoldedAggregate:
    if len(arguments) == 1 and arguments[0].is_literal and arguments[0].literal is not None:
        return LONG, _count_known, []
    return LONG, _count_known, arguments


def _sum(arguments: list[Value]) -> FoldedAggregate:
    (value,) = arguments
    if isinstance(value.type, T.DoubleType):

        def sum_fractions(columns: Sequence[Values], frames: Frames) -> Values:
            known = _known(columns, frames)
            return _doubles(_add_fractions(columns[0], known), known.counts == 0)

        return DOUBLE, sum_fractions, arguments
    if is_integer(value.type):
        type_: T.DataType = LONG
    elif isinstance(value.type, T.DecimalType):
        type_ = of_decimal(Decimal(value.type.precision, value.type.scale).sum())
    else:
        raise UnsupportedLocally(f"a sum or average of values of type {value.type.simpleString()}")

    def summed(columns: Sequence[Values], frames: Frames) -> Values:
        known = _known(columns, frames)
        totals = _add_whole(columns[0], value.type, type_, known)
        given = zip(totals.tolist(), known.counts.tolist(), strict=True)
        return ArrowColumn(to_arrow([total if n else None for total, n in given], type_), type_)

    return type_, summed, arguments


def _add_whole(values: Values, type_: T.DataType, to: T.DataType, frames: Frames) -> np.ndarray:
    """Return sums of whole numbers that stay within their type in any order of the rows."""
    numbers = whole_numbers(column_of(take_rows(values, frames.rows), type_))
    greatest = max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))
    greatest *= int(frames.counts.max(initial=0))
    if greatest >= 2**63:
        numbers = numbers.astype(object)
    most, check = 2**63, bounds_check(LONG)
    if isinstance(to, T.DecimalType):
        most, check = 10**to.precision, fits_in(to)
    if greatest >= most:
        for part in (np.maximum(numbers, 0), np.minimum(numbers, 0)):
            for total in set(_add_spans(part, frames).tolist()):
                check(total)
    return _add_spans(numbers, frames)


def _add_spans(numbers: np.ndarray, frames: Frames) -> np.ndarray:
    """Return the sum of each frame; running totals may wrap around, their differences do not."""
    before = _add_up(numbers)
    sums: np.ndarray = before[frames.ends] - before[frames.firsts]
    return sums


def _doubles(numbers: np.ndarray, nulls: np.ndarray) -> Values:
    return ArrowColumn(pa.array(numbers, pa.float64(), mask=nulls), DOUBLE)


def _add_fractions(values: Values, frames: Frames) -> np.ndarray:
    """Add each frame's values from the first to the last.

    Whole numbers that stay exact in any order are added once, for all frames together. Frames with
    the same beginning share their additions; of others, the nth values of all are added at once.
    """
    given = column_of(take_rows(values, frames.rows), DOUBLE).to_numpy(zero_copy_only=False)
    with np.errstate(all="ignore"):
        if len(given) * np.abs(given).max(initial=0) < EXACT and (given == np.rint(given)).all():
            return _add_spans(given, frames) + 0.0  # no -0.0
        starts, nth = np.unique(frames.firsts, return_inverse=True)
        ends = np.zeros(len(starts), np.int64)
        np.maximum.at(ends, nth, frames.ends)
        if len(starts) < (ends - starts).max(initial=0) and (ends[:-1] <= starts[1:]).all():
            before = np.zeros(len(given) + 1)
            for first, end in zip(starts.tolist(), ends.tolist(), strict=True):
                before[first + 1 : end + 1] = np.cumsum(given[first:end]) + 0.0
            return np.where(frames.counts > 0, before[frames.ends], 0.0)
        return _add_in_order(given, frames.firsts, frames.counts)


def _add_in_order(given: np.ndarray, firsts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the sums of so many values from each first one on."""
    if counts.sum() > MOST_ADDITIONS:
        raise UnsupportedLocally("window frames with too many fractions")
    longest_first = np.argsort(-counts, kind="stable")
    starts, sums = firsts[longest_first], np.zeros(len(firsts))
    steps = np.arange(counts.max(initial=0))
    more = len(counts) - np.searchsorted(np.sort(counts), steps, side="right")
    for nth, frames in enumerate(more.tolist()):
        sums[:frames] += given[starts[:frames] + nth]
    found = np.empty_like(sums)
    found[longest_first] = sums
    return found


def _avg(arguments: list[Value]) -> FoldedAggregate:
    (value,) = arguments
    if not isinstance(value.type, T.DecimalType):

        def average_fractions(columns: Sequence[Values], frames: Frames) -> Values:
            known = _known(columns, frames)
            sums, nulls = _add_fractions(columns[0], known), known.counts == 0
            return _doubles(sums / np.where(nulls, 1, known.counts), nulls)

        return DOUBLE, average_fractions, [number(value)]
    given = Decimal(value.type.precision, value.type.scale)
    found, total = of_decimal(given.average()), of_decimal(given.sum())
    fits, more = fits_in(found), 10 ** (found.scale - value.type.scale)

    def average(columns: Sequence[Values], frames: Frames) -> Values:
        known = _known(columns, frames)
        totals = _add_whole(columns[0], value.type, total, known)
        pairs = zip(totals.tolist(), known.counts.tolist(), strict=True)
        return [fits(half_up(summed * more, n)) if n else None for summed, n in pairs]

    return found, average, arguments


def _choose(
    by: Values, type_: T.DataType, frames: Frames, *, greatest: bool, last: bool = False
) -> np.ndarray:
    """Return each frame's row with the least or greatest value, the first or last that ties."""
    known = _known([by], frames)
    ranks = rank_values(take_rows(by, known.rows), type_)[0]
    ranks = np.unique(~ranks if greatest else ranks, return_inverse=True)[1]
    count, places = len(ranks), np.arange(len(ranks))
    least = _least(ranks * count + (count - 1 - places if last else places), known)
    chosen = least % max(count, 1)
    return known.rows_at(count - 1 - chosen if last else chosen)


def _least(numbers: np.ndarray, frames: Frames) -> np.ndarray:
    """Return the least number of each frame: of two spans of 2**n numbers that cover it."""
    found, counts = np.zeros(len(frames.firsts), np.int64), frames.counts
    powers = np.frexp(counts)[1] - 1
    for power in range(int(powers.max(initial=-1)) + 1):
        here, width = powers == power, 1 << power
        starts, ends = frames.firsts[here], frames.ends[here]
        found[here] = np.minimum(numbers[starts], numbers[ends - width])
        numbers = np.minimum(numbers[:-width], numbers[width:])
    return found


def _extreme(arguments: list[Value], *, greatest: bool) -> FoldedAggregate:
    if isinstance(arguments[0].type, T.NullType):
        return NULL, lambda _, frames: [None] * len(frames.firsts), arguments
    return _extreme_by([arguments[0], arguments[0]], greatest=greatest, last=False)


def _extreme_by(arguments: list[Value], *, greatest: bool, last: bool = True) -> FoldedAggregate:
    if len(arguments) == 3:
        return _first_by(greatest, arguments)
    value, by = arguments
    order_of(by.type)

    def choose(columns: Sequence[Values], frames: Frames) -> Values:
        rows = _choose(columns[1], by.type, frames, greatest=greatest, last=last)
        return take_rows(columns[0], rows)

    return value.type, choose, arguments


def _first_by(descending: bool, arguments: list[Value]) -> FoldedAggregate:
    value, by, most = arguments
    order, count = order_of(by.type), most.literal
    if most.type != INT or not 1 <= count <= MOST_FIRST:
        raise UnsupportedLocally(
            f"min_by or max_by with a number of rows that is not a constant from 1 to {MOST_FIRST}"
        )

    def first(values: list[Any], keys: list[Any]) -> tuple[Any, ...] | None:
        given = [(order(k), i) for i, k in enumerate(keys) if k is not None]
        if not given:
            return None
        ranked = sorted(given, key=lambda pair: pair[0], reverse=descending)
        if any(a == b for (a, _), (b, _) in pairwise(ranked[: count + 1])):
            raise UnsupportedLocally("min_by or max_by of rows that tie")
        return tuple(values[i] for _, i in ranked[:count])

    return T.ArrayType(value.type), partial(_each_frame, first), [value, by]


def _each_frame(
    function: Callable[..., Any], columns: Sequence[Values], frames: Frames
) -> list[Any]:
    """Return a function of the lists of each frame's values; that of equal frames once."""
    bounds = list(zip(frames.firsts.tolist(), frames.ends.tolist(), strict=True))
    once = set(bounds)
    if sum(end - first for first, end in once) > MOST_STEPS:
        raise UnsupportedLocally("window frames with too many rows")
    lists = [list(take_rows(values, frames.rows)) for values in columns]
    found = {(a, b): function(*(values[a:b] for values in lists)) for a, b in once}
    return [found[bound] for bound in bounds]


def _each_known(
    function: Callable[[list[Any]], Any], columns: Sequence[Values], frames: Frames
) -> list[Any]:
    return _each_frame(function, columns, _known(columns, frames))


def _approximate(arguments: list[Value]) -> FoldedAggregate:
    """Return the number of distinct values, exactly."""
    (value,) = arguments

    def counted(columns: Sequence[Values], frames: Frames) -> Values:
        numbers = number_values(columns[0], value.type)
        return _count_known((), _known(columns, frames).distinct(numbers))

    return LONG, counted, arguments


def _end(arguments: list[Value], *, last: bool) -> FoldedAggregate:
    value, ignoring = arguments[0], arguments[1] if arguments[1:] else FALSE
    ignores = ignoring.literal
    if not isinstance(ignores, bool):
        raise UnsupportedLocally("first or last whose second argument is not a constant boolean")

    def chosen(columns: Sequence[Values], frames: Frames) -> Values:
        frames = _known(columns, frames) if ignores else frames
        return take_rows(columns[0], frames.rows_at(frames.ends - 1 if last else frames.firsts))

    return value.type, chosen, [value]


def _collect_list(arguments: list[Value]) -> FoldedAggregate:
    return T.ArrayType(arguments[0].type), partial(_each_known, tuple), arguments


def _collect_set(arguments: list[Value]) -> FoldedAggregate:
    check_distinct(arguments[0].type)
    key, shown = key_function(arguments[0].type), normal(arguments[0].type)

    def distinct(values: list[Any]) -> tuple[Any, ...]:
        found: dict[Any, Any] = {}
        for value in values:
            found.setdefault(key(value), shown(value))
        return tuple(found.values())

    return T.ArrayType(arguments[0].type), partial(_each_known, distinct), arguments


def _truth(arguments: list[Value], *, of_all: bool) -> FoldedAggregate:
    def decided(columns: Sequence[Values], frames: Frames) -> Values:
        known = _known(columns, frames)
        true = _add_spans(true_mask(columns[0])[known.rows], known)
        found = true == known.counts if of_all else true > 0
        return ArrowColumn(pa.array(found, mask=known.counts == 0), BOOLEAN)

    return BOOLEAN, decided, [boolean(arguments[0])]


def _mode(arguments: list[Value]) -> FoldedAggregate:
    (value,) = arguments
    if has_floats(value.type) or isinstance(value.type, T.MapType | T.BinaryType):
        raise UnsupportedLocally(f"mode of values of type {value.type.simpleString()}")

    def most(values: list[Any]) -> Any:
        counted = Counter(values).most_common(2)
        if len(counted) > 1 and counted[0][1] == counted[1][1]:
            raise UnsupportedLocally("mode of values that tie")
        return counted[0][0] if counted else None

    return value.type, partial(_each_known, most), arguments


ENDS = ("first", "first_value", "any_value", "last", "last_value")
MOST_ARGUMENTS = {**dict.fromkeys(ENDS, 2), "min_by": 3, "max_by": 3}
AGGREGATES: Mapping[str, Callable[[list[Value]], FoldedAggregate]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "mean": _avg,
    "min": partial(_extreme, greatest=False),
    "max": partial(_extreme, greatest=True),
    "min_by": partial(_extreme_by, greatest=False),
    "max_by": partial(_extreme_by, greatest=True),
    **{name: partial(_end, last=name.startswith("last")) for name in ENDS},
    "collect_list": _collect_list,
    "array_agg": _collect_list,
    "collect_set": _collect_set,
    "count_if": lambda arguments: (
        LONG,
        lambda columns, frames: _count_known((), frames.keep(true_mask(columns[0]))),
        [boolean(arguments[0])],
    ),
    "bool_or": partial(_truth, of_all=False),
    "any": partial(_truth, of_all=False),
    "some": partial(_truth, of_all=False),
    "bool_and": partial(_truth, of_all=True),
    "every": partial(_truth, of_all=True),
    "mode": _mode,
    "approx_count_distinct": _approximate,
}
OF_DISTINCT = ("count", "sum", "avg", "mean", "min", "max")


def arguments_of(call: E.FunctionCall) -> list[E.ExpressionNode]:
    """Return an aggregate's arguments.

    Raises UnsupportedLocally for a star in other than `count(*)`.
    """
    stars = [a for a in call.arguments if isinstance(a, E.Star)]
    if not stars:
        return list(call.arguments)
    if call.name != "count" or call.is_distinct or len(call.arguments) > 1 or stars[0].of:
        raise UnsupportedLocally(f"* in {call.name}")
    return [E.Literal(1, INT)]


def aggregate_of(name: str, arguments: list[Value], *, is_distinct: bool) -> FoldedAggregate:
    """Return an aggregate's type, its fold, and the arguments that the fold takes."""
    if name not in AGGREGATES:
        raise UnsupportedLocally(f"the aggregate {name}")
    if name != "count" and not 1 <= len(arguments) <= MOST_ARGUMENTS.get(name, 1):
        raise UnsupportedLocally(f"{name} with {len(arguments)} arguments")
    type_, fold, taken = AGGREGATES[name](arguments)
    if not is_distinct:
        return type_, fold, taken
    if name not in OF_DISTINCT:
        raise UnsupportedLocally(f"{name} with DISTINCT")
    for argument in arguments:
        key_function(argument.type)

    def of_distinct(columns: Sequence[Values], frames: Frames) -> Values:
        given = columns[len(taken) :]
        numbers = [number_values(c, a.type) for c, a in zip(given, arguments, strict=True)]
        frames = frames.distinct(combine(numbers, len(numbers[0])))
        return fold(columns[: len(taken)], frames)

    return type_, of_distinct, [*taken, *arguments]
