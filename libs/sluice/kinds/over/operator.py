"""Over: SQL's window functions, by partition.

A batch computes only the rows that the frames of its window functions reach from a change.

A change touches the partitions that contain or contained its rows. Each is recomputed, whole or as
far as frames reach, and compared; unchanged rows are not written. The input's key breaks ties where
they must be ordered, so that two runs agree.

A changed row alters the results of rows whose frames reach it; these read the rows that their own
frames reach. A batch finds both by their partition and a span of the order's first column, and
compares the results with the view's rows of the same keys. Functions from the partition's beginning
on go on from their result in the view, at a row before all that changed.

Frames are followed in the rows that were read, so no span is too short: a partition whose rows end
before a frame does is read whole. The batch of whole partitions computes what has no bounds, and
what is not worth a search: other functions, short partitions, small tables, too many rows.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from sluice.changes import diff
from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table, carried_columns
from sluice.delta.log.files import active_files, size_of
from sluice.delta.log.opened import open_version
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.reading.live import rows_of_files
from sluice.delta.reading.local import arrow_schema, hand_as_stored, hand_over, is_bare
from sluice.delta.reading.searching import SearchedVersion
from sluice.delta.reading.wanted import Span
from sluice.engine.batch import Batch, Reread
from sluice.engine.batch_plan import BatchPlan, BatchResult, Context, Strategy, Way
from sluice.engine.operator import InputRows, Operator, names, passed_on, same, within
from sluice.engine.plan import Node
from sluice.engine.rows import Here, is_true
from sluice.engine.upkeep import Kept
from sluice.interpreter.values.numbering import combine
from sluice.kinds.over import (
    BY,
    ORDERED,
    OTHER_ROWS,
    RANKS,
    ROWS_OF_FRAME,
    SECONDS,
    SO_FAR,
    SUMS,
    WHOLE,
    Over,
    WindowCall,
)
from sluice.language.expression import SortKey
from sluice.language.types import INTEGERS, Decimal, base_name

ALL = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
AFFECTED, GOES_ON = "_sluice_affected", "_sluice_goes_on"
HAD = "_sluice_had"  # before a function's name: its result in the view
PLACED = (*INTEGERS, "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
COMPARED = (*PLACED, "BOOLEAN", "STRING", "DECIMAL", "DOUBLE", "FLOAT")
LONGEST = {**SECONDS, "month": 31 * 86_400, "year": 366 * 86_400}
SUMMED_DIGITS = 36  # three such sums make one of 38
# How functions go on: from `had`, a result in the view, and from results over the rows that were
# read, `then` at the same row and `now` at a later one.
COUNTED = "{had} + {now} - {then}"
ADDED = (
    "coalesce(CAST(CAST({had} AS {wide}) + coalesce(CAST({now} AS {wide}), 0) "
    "- coalesce(CAST({then} AS {wide}), 0) AS {type}), {now})"
)
RUNS: Mapping[str, str] = {
    **dict.fromkeys(("row_number", "rank", "dense_rank"), COUNTED),
    **dict.fromkeys(("count", "count_if", "regr_count"), COUNTED),
    **dict.fromkeys(("min", "bool_and", "every"), "least({had}, {now})"),
    **dict.fromkeys(("max", "bool_or", "some"), "greatest({had}, {now})"),
    "sum": ADDED,
    **dict.fromkeys(("first_value", "first"), "{had}"),
    **dict.fromkeys(("last_value", "last"), "coalesce({now}, {had})"),  # without nulls
}


class OverRows(Operator):
    """The input's rows, with columns that read the rows of their partition."""

    def __init__(self, view: Table, source: Table):
        assert isinstance(view.spec, Over)
        self.view, self.source, self.spec = view, source, view.spec
        self.inputs = (source.id,)
        self.group = tuple(f"{BY}{i}" for i in range(len(self.spec.partition_by)))
        self.key = view.key
        self._carried = carried_columns(view, source)

    @property
    def totals(self) -> tuple[str, ...]:
        return tuple(call.sql for call in self.calls.values() if call.function in SUMS)

    def columns(self, name: str) -> tuple[str, ...]:
        used = {*self.source.key}
        expressions = [*self.spec.partition_by, *(key.expression for key in self.spec.order_by)]
        expressions += [self.spec.where] if self.spec.where else []
        for one in self.spec.select.values():
            expressions += [one.expression, *one.read]
        for expression in expressions:
            used |= expression.reads(self.source.columns)
        return tuple(sorted(used - self.calls.keys()))

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        pairs = zip(self.group, self.spec.partition_by, strict=True)
        known = {e.plain_column: c for c, e in pairs if e.plain_column}
        return [known] if known else ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        met = rows.where(self.spec.where.sql) if self.spec.where else rows
        used = self.columns(name)
        by = [
            F.expr(e.sql).alias(c) for c, e in zip(self.group, self.spec.partition_by, strict=True)
        ]
        return met.select(*names(used), *by, *names(tuple(passed_on(rows, used))))

    @cached_property
    def calls(self) -> Mapping[str, WindowCall]:
        """The window functions, by the columns of their results."""
        return {call.name: call for one in self.spec.select.values() for call in one.calls}

    @cached_property
    def reach(self) -> "Reach | None":
        """Reach of the frames of all window functions; None if one has no bounds."""
        return reach_of(self)

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        return self._show(self._call(prepared[self.source.id]))

    def go_on(self, rows: DataFrame, current: DataFrame) -> DataFrame:
        """Return the output rows of prepared rows that are marked as AFFECTED.

        In partitions marked with GOES_ON, functions from the beginning go on from the first row's
        results in `current`, the view's rows.
        """
        assert self.reach is not None
        runs = self.reach.runs
        if not runs:
            return self._show(self._call(rows).where(AFFECTED))
        kept = [F.col(f"`{out}`").alias(column) for out, column in self._carried.items()]
        had = [F.col(f"`{column}`").alias(HAD + name) for name, (column, _) in runs.items()]
        held, on = current.select(*kept, *had).alias("_had"), same("_rows", "_had", self.source.key)
        joined = rows.alias("_rows").join(held, on, "left")
        joined = joined.select("_rows.*", *names(tuple(HAD + name for name in runs)))
        over = f"OVER ({self._window(WindowCall(function='first_value', sql='', window=ORDERED))})"
        gone_on = {
            name: F.expr(
                f"IF({GOES_ON}, {sql}, {{now}})".format(
                    now=name,
                    then=f"first_value({name}) {over}",
                    had=f"first_value({HAD}{name}) {over}",
                )
            )
            for name, (_, sql) in runs.items()
        }
        return self._show(self._call(joined).withColumns(gone_on).where(AFFECTED))

    def _call(self, rows: DataFrame) -> DataFrame:
        """Add the results of the window functions."""
        over = [f"{call.sql} OVER ({self._window(call)}) AS {n}" for n, call in self.calls.items()]
        return rows.selectExpr("*", *over)

    def _show(self, rows: DataFrame) -> DataFrame:
        shown = {name: F.expr(one.expression.sql) for name, one in self.spec.select.items()}
        hidden = {out: F.col(f"`{c}`") for out, c in self._carried.items() if out not in shown}
        every = {**shown, **hidden, **{c: F.col(c) for c in self.group}}
        return rows.select(*[column.alias(name) for name, column in every.items()])

    def _window(self, call: WindowCall) -> str:
        by = f"PARTITION BY {', '.join(self.group)} " if self.group else ""
        order = [key.sql for key in self.spec.order_by]
        if call.is_by_place:
            order += [f"`{column}`" for column in self.source.key]
        default = SO_FAR if call.function in ROWS_OF_FRAME else ""
        frame = ALL if call.window == WHOLE else call.frame or default
        return f"{by}ORDER BY {', '.join(order)} {frame}"


@dataclass(frozen=True)
class Reach:
    """Numbers of rows, and distances in the order, before and after a row that its results read.

    Distances are in units of the order's first `column`, and at least as long as in the frames.
    `runs`: the functions that read all rows before it, by name, with the view's column of their
    results, and how they go on.
    """

    column: str
    rows: tuple[int, int]
    distances: tuple[int, int]
    runs: Mapping[str, tuple[str, str]]


def reach_of(operator: OverRows) -> Reach | None:
    """Return how far results of a view reach; None if one reads a whole partition."""
    spec, source, view = operator.spec, operator.source, operator.view
    column = spec.order_by[0].expression.plain_column if spec.order_by else None
    type_ = base_name(source.columns.get(column or "", ""))
    is_plain = spec.partition_by and all(e.plain_column for e in spec.partition_by)
    if not column or type_ not in PLACED or not is_plain:
        return None
    held = {one.expression.plain_column: name for name, one in spec.select.items() if one.calls}
    runs, far = dict[str, tuple[str, str]](), {"ROWS": (0, 0), "RANGE": (0, 0)}
    for name, call in operator.calls.items():
        kind, first, last = _frame_of(call, type_)
        if first == -math.inf and last < math.inf:
            shown = held.get(name, "")
            sql = _run_of(call, view.columns.get(shown, ""), last)
            if not sql:
                return None
            runs[name], first = (shown, sql), 0
        if not (math.isfinite(first) and math.isfinite(last)):
            return None
        before, after = far[kind]
        far[kind] = max(before, -int(first)), max(after, int(last))
    return Reach(column, far["ROWS"], far["RANGE"], runs)


def _frame_of(call: WindowCall, type_: str) -> tuple[str, float, float]:
    """Return the frame by ROWS or RANGE: its first and its last row, or distance, from a row."""
    ignores = _ignores_nulls(call)
    if call.function in OTHER_ROWS and not ignores:
        by = int(call.arguments[1].sql) if len(call.arguments) > 1 else 1
        return ("ROWS", -by, 0) if call.function == "lag" else ("ROWS", 0, by)
    is_bounded = call.function in RANKS and call.function in RUNS
    if call.window == WHOLE or (call.function in (*RANKS, *OTHER_ROWS) and not is_bounded):
        return "ROWS", -math.inf, math.inf
    default = SO_FAR if call.function in ROWS_OF_FRAME else SO_FAR.replace("ROWS", "RANGE")
    kind, _, bounds = (call.frame or default).partition(" BETWEEN ")
    first, last = (_distance(bound, type_) for bound in bounds.split(" AND "))
    if call.function in ("last_value", "last") and not ignores:
        first = last
    return kind, first, last


def _ignores_nulls(call: WindowCall) -> bool:
    is_flagged = call.function in ROWS_OF_FRAME and len(call.arguments) > 1
    return is_flagged or "IGNORE NULLS" in call.sql.upper()


def _distance(bound: str, type_: str) -> float:
    """Return how far a bound is from its row; a distance in time is the longest that it can be."""
    *given, side = bound.replace("'", "").split()
    sign = -1 if side == "PRECEDING" else 1
    match given:
        case ["CURRENT"]:
            return 0
        case ["INTERVAL", number, unit]:
            seconds = int(number) * LONGEST[unit.lower().removesuffix("s")]
            return sign * (math.ceil(seconds / 86_400) if type_ == "DATE" else seconds * 1_000_000)
        case [number] if number.isdigit():
            return sign * int(number)
    return sign * math.inf


def _run_of(call: WindowCall, type_: str, last: float) -> str:
    """Return how a function goes on from its result, of that type, in the view; '' if it can't."""
    sql, of = RUNS.get(call.function, ""), Decimal.of(type_)
    if call.function in ROWS_OF_FRAME:
        is_sure = not last and (sql != "{had}" or not _ignores_nulls(call))
        return sql if is_sure and type_ else ""
    if sql != ADDED:
        return sql if base_name(type_) in COMPARED else ""
    if of is None or of.precision > SUMMED_DIGITS:
        return ""
    wide = f"DECIMAL({of.precision}, {of.scale})"
    return sql.replace("{wide}", wide).replace("{type}", type_)


LEAST_ROWS = 100  # of a partition, on average; shorter ones are computed whole
ROOM = 2  # times the span that the rows of frames take on average
START, END = -(2**62), 2**62  # places before and after all others
WIDEST = 2**61


class OverBatch(Batch[OverRows]):
    """One batch of an over."""

    @classmethod
    def way(cls, plan: BatchPlan, lake: LakeLayout) -> Way:
        if cast(OverRows, plan.node.operator).reach is None:
            return super().way(plan, lake)
        return Strategy.RECOMPUTE, "rows whose frames reach changed rows are computed"

    @classmethod
    def rereads(cls, context: Context, plan: BatchPlan) -> tuple[Reread, ...]:
        """Return the touched partitions; not all of their rows are surely read."""
        is_sure = cast(OverRows, plan.node.operator).reach is None
        return tuple(replace(one, is_sure=is_sure) for one in super().rereads(context, plan))

    def recompute_groups(self, changes: InputRows) -> BatchResult:
        return self._follow_frames(changes) or super().recompute_groups(changes)

    def _follow_frames(self, changes: InputRows) -> BatchResult | None:
        """Compute the rows that frames reach; None if partitions are to be computed whole."""
        operator, source, limits = self.operator, self.operator.source, self.context.limits
        if operator.reach is None or not (self._input.is_large and self._input.may_search):
            return None
        if (self.plan.size.rows or 0) > 2 * limits.handed_rows:  # with both images of a row
            return None
        order = Order(operator.spec.order_by[0], operator.reach.column)
        ends = order.ends(self._input)
        room = self._room(operator.reach, order, *ends) if ends else None
        if ends is None or room is None:
            return None
        used = tuple(dict.fromkeys((*operator.group, order.column, *source.key)))
        rows = operator.prepare(source.id, changes[source.id]).select(*names(used))
        changed = Here.of(rows.limit(limits.handed_rows + 1))
        if changed.count() > limits.handed_rows:
            return None
        near = self._find_near(order, changed.table, room, *ends)
        return None if near is None else self._compare(near, changed)

    def _compare(self, near: Here, changed: Here) -> BatchResult | None:
        """Compare the results of rows with the view's of the same keys; None if these are many."""
        operator, before, key = self.operator, self.plan.before, list(self.operator.source.key)
        carried = carried_columns(operator.view, operator.source)
        assert before is not None
        view = SearchedVersion(self.plan.uri, before.version, self.context.limits)
        keys = pa.concat_tables([near.table.select(key), changed.table.select(key)])
        held = view.find_rows([{out: keys[column] for out, column in carried.items()}])
        if held is None:
            return None
        current = hand_as_stored(self.session, view.uri, view.version, held)
        affected = near.where(is_true(AFFECTED)).table.select(key)
        keys = pa.concat_tables([affected, changed.table.select(key)])
        keys = keys.group_by(key).aggregate([]).select(key).rename_columns(list(carried))
        types = [StructField(out, changed.types[c].dataType) for out, c in carried.items()]
        old = within(current, hand_over(self.session, keys, StructType(types)), operator.key)
        new = operator.go_on(near.rows, current)
        return BatchResult(diff(old, new, operator.key, ignore=self.plan.node.ignored))

    @cached_property
    def _input(self) -> SearchedVersion:
        id_ = self.operator.source.id
        uri, version = self.context.lake.uri(id_), self.plan.pins[id_].version
        return SearchedVersion(uri, version, self.context.limits, self.operator.columns(id_))

    def _find_near(
        self, order: "Order", changed: pa.Table, room: int, start: int, end: int
    ) -> Here | None:
        """Return the prepared rows that frames reach, marked; None if they may not be found."""
        (ids,), reach = self._number_groups(changed), self.operator.reach
        assert reach is not None
        touched = Touched.of(reach, ids, order.places(changed))
        split = touched.split(min(sum(reach.distances) + room, WIDEST), start, end)
        read = [self._read(order, changed.filter(some[ids]), *at) for some, *at in split]
        while pages := [page for page in read if page is not None]:
            if len(pages) < len(read):
                return None
            rows = replace(pages[0], table=pa.concat_tables(page.table for page in pages))
            _, of_rows = self._number_groups(changed, rows.table)
            lacking, marked = touched.mark(of_rows, order.places(rows.table), rows)
            if not lacking.any():
                return marked
            others = rows.table.filter(~np.isin(of_rows, np.flatnonzero(lacking)))
            whole = self._read(order, changed.filter(lacking[ids]), START, END)
            read = [replace(rows, table=others), whole]
        return None

    def _room(self, reach: Reach, order: "Order", start: int, end: int) -> int | None:
        """Return a span in which most partitions have the rows of all frames.

        None if partitions have few more rows. It is an estimate, from rows of the largest file.
        """
        rows, source = sum(reach.rows) + bool(reach.runs), self._input
        if not rows or is_bare():
            return 0
        groups = [*self.operator.map_to_group(self.operator.source.id)[0]]
        table = open_version(source.uri, source.version)
        files = active_files(table).sort_by([("size_bytes", "descending")])
        largest = rows_of_files(table, source.uri, lambda path: path == files["path"][0].as_py())
        pages = largest.to_batches(columns=[*groups, order.column])
        page = next((page for page in pages if page.num_rows), None)
        if page is None:
            return None
        some = pa.Table.from_batches([page])
        places = order.places(some)
        known = places[abs(places) < END]
        span = int(known.max(initial=start)) - int(known.min(initial=end))
        count = some.group_by(groups).aggregate([]).num_rows
        total = size_of(table).rows or some.num_rows
        step = max(span / some.num_rows, (end - start) / total) * count
        is_long = end - start > step * max(LEAST_ROWS, ROOM * rows)
        return math.ceil(ROOM * rows * step) if is_long else None

    def _read(self, order: "Order", of: pa.Table, floor: int, ceiling: int) -> Here | None:
        """Return prepared rows of these partitions between two places; None if they are many."""
        source, id_ = self._input, self.operator.source.id
        (named,) = self.operator.map_to_group(id_)
        wanted = [{column: of[group] for column, group in named.items()}]
        type_ = arrow_schema(source.uri, source.version).field(order.column).type
        rows = source.find_rows(wanted, order.span(floor, ceiling, type_))
        if rows is None:
            return None
        handed = hand_as_stored(self.session, source.uri, source.version, rows)
        return Here.of(self.operator.prepare(id_, handed))

    def _number_groups(self, *tables: pa.Table) -> list[np.ndarray]:
        """Return a number for the partition of each row, from 0 on in the order of the first."""
        counts = [table.num_rows for table in tables]
        every = pa.concat_tables(table.select(self.operator.group) for table in tables)
        columns = [c.combine_chunks().dictionary_encode("encode") for c in every.columns]
        numbers = combine([np.asarray(c.indices, np.int64) for c in columns], sum(counts))
        return np.split(numbers, np.cumsum(counts)[:-1])


@dataclass(frozen=True)
class Order:
    """Places of rows in their partition: their values of the order's first column, as numbers.

    Rows that tie there share a place. Nulls are at START or END. Places that don't fit are drawn
    nearer, so that frames at most reach too far.
    """

    key: SortKey
    column: str

    def places(self, rows: pa.Table) -> np.ndarray:
        """Return the place of each row."""
        given = rows[self.column].combine_chunks()
        whole = given.cast(pa.int32()) if pa.types.is_date32(given.type) else given
        numbers = np.asarray(whole.cast(pa.int64()).fill_null(0))
        numbers = np.clip(numbers, START + 1, END - 1)
        numbers = -numbers if self.key.descending else numbers
        return np.where(given.is_null(), START if self.key.nulls_first else END, numbers)

    def ends(self, source: SearchedVersion) -> tuple[int, int] | None:
        """Return the first and the last place with a value, by the log; None if unknown."""
        files = active_files(open_version(source.uri, source.version))
        bounds = [f"min.{self.column}", f"max.{self.column}"]
        if not {*bounds} <= {*files.column_names}:
            return None
        columns = (files.select([name]).rename_columns([self.column]) for name in bounds)
        places = self.places(pa.concat_tables(columns))
        places = places[abs(places) < END]
        return (int(places.min()), int(places.max())) if len(places) else None

    def span(self, first: int, last: int, type_: pa.DataType) -> Span | None:
        """Return the values between two places, for a search; None if these are all."""
        bounds = [None if abs(place) == END else place for place in (first, last)]
        nulls = first == START if self.key.nulls_first else last == END
        if bounds == [None, None] and nulls:
            return None
        if self.key.descending:
            bounds = [None if place is None else -place for place in reversed(bounds)]
        whole = pa.int32() if pa.types.is_date32(type_) else pa.int64()
        least, most = pa.array(bounds, whole).cast(type_)
        return Span(self.column, least, most, nulls=bool(nulls))


@dataclass(frozen=True)
class Touched:
    """The touched partitions: in each, the first and the last place of a change, and the places
    between which its rows were read.
    """

    reach: Reach
    first: np.ndarray
    last: np.ndarray
    floor: np.ndarray
    ceiling: np.ndarray

    @classmethod
    def of(cls, reach: Reach, ids: np.ndarray, places: np.ndarray) -> Self:
        """Return the partitions of changed rows."""
        first, last = (np.full(int(ids.max(initial=-1)) + 1, end) for end in (END, START))
        np.minimum.at(first, ids, places)
        np.maximum.at(last, ids, places)
        return cls(reach, first, last, first.copy(), last.copy())

    def split(self, width: int, start: int, end: int) -> Iterator[tuple[np.ndarray, int, int]]:
        """Yield partitions that are read together, and from where to where: so far from changes.

        Partitions with an early change are read apart from others, those with a null whole.
        """
        has_null = (self.first == START) | (self.last == END)
        is_open = has_null | (self.first - width <= start)
        self.floor[:] = np.where(is_open, START, self.first - width)
        is_open = has_null | (self.last + width >= end) | bool(self.reach.runs)
        self.ceiling[:] = np.where(is_open, END, self.last + width)
        floors = np.unique(self.floor)
        gaps = np.diff(floors)
        cut = floors[gaps.argmax()] if gaps.max(initial=0) > width else END
        for some in (self.floor <= cut, self.floor > cut)[: 1 if cut == END else 2]:
            floor = self.floor[some].min(initial=END)
            ceiling = self.ceiling[some].max(initial=START)
            self.floor[some], self.ceiling[some] = floor, ceiling
            yield some, int(floor), int(ceiling)

    def mark(self, ids: np.ndarray, places: np.ndarray, rows: Here) -> tuple[np.ndarray, Here]:
        """Return which partitions have too few rows, and of the others the rows that are needed.

        AFFECTED are those whose results may differ, GOES_ON those of a partition with rows before.
        Partitions with too few rows count as read whole from here on.
        """
        count, in_order = len(self.first), np.lexsort((places, ids))
        starts = np.searchsorted(ids[in_order], np.arange(count + 1))
        spans, lacking = np.zeros((4, count + 1), np.int64), np.zeros(count, bool)
        for nth in range(count):
            found = self._span(nth, places[in_order[starts[nth] : starts[nth + 1]]])
            if found is None:
                lacking[nth], self.floor[nth], self.ceiling[nth] = True, START, END
            else:
                spans[:, nth] = found
        low, first, last, high = spans[:, np.minimum(ids, count)]
        needed = (ids < count) & (low <= places) & (places <= high)
        marks = {AFFECTED: (first <= places) & (places <= last), GOES_ON: low > START}
        table = rows.table.filter(needed)
        for name, mark in marks.items():
            table = table.append_column(name, pa.array(mark[needed]))
        types = StructType([*rows.types.fields, *(StructField(n, BooleanType()) for n in marks)])
        return lacking, replace(rows, table=table, types=types)

    def _span(self, nth: int, places: np.ndarray) -> tuple[int, int, int, int] | None:
        """Return the first needed, first affected, last affected and last needed place.

        `places`: those of the partition's rows that were read, in order. None if these end before.
        """
        (before, after), (far_before, far_after) = self.reach.rows, self.reach.distances
        runs = bool(self.reach.runs)  # they need a row to go on from
        floor, ceiling = int(self.floor[nth]), int(self.ceiling[nth])
        first = _go_back(places, int(self.first[nth]), after, far_after, floor)
        low = _go_back(places, first, max(before, runs), far_before, floor)
        places, at = -places[::-1], -END if runs else -int(self.last[nth])
        last = _go_back(places, at, before, far_before, -ceiling)
        high = _go_back(places, last, after, far_after, -ceiling)
        if first is None or low is None or last is None or high is None:
            return None
        return low, first, -last, -high


def _go_back(
    places: np.ndarray, at: int | None, rows: int, distance: int, floor: int
) -> int | None:
    """Return the place from which on rows are that lie so many rows, or so far, before another.

    None if the rows that were read, from `floor` on, don't show it.
    """
    if at is None or at == START:
        return at
    nth = int(np.searchsorted(places, at)) - rows
    found = START if nth < 0 else min(at - distance, int(places[nth]) if rows else at)
    return None if found < floor else max(found, START)


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    (source,) = graph.inputs(table.id)
    return (Node(table.id, table, OverRows(table, source), definition(table), OverBatch, Kept),)
