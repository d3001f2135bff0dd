"""Cogroup: many streams into one row per key, by one shuffle.

After KIP-150 (Kafka Streams' cogroup), with retractions. The view is kept in two tables. The state
holds what each stream has accumulated for a key; the visible view is a function of one state row. A
batch merges changes into the touched rows of the state (`kinds.cogroup.change`). Sessions are
always recomputed, because added and removed rows move their bounds.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from sluice.changes import WEIGHT
from sluice.declare.table import Table
from sluice.declare.table_spec import END, START
from sluice.engine import windows
from sluice.engine.operator import (
    ColumnEquality,
    InputRows,
    Operator,
    Retention,
    names,
    passed_on,
    same,
    union,
    within,
)
from sluice.engine.tracing import Groups
from sluice.kinds.cogroup import Cogroup, Stream
from sluice.kinds.cogroup.accumulator import Accumulator
from sluice.kinds.cogroup.collected import Bound, Collected, CountDistinct, End, Frequent, Listed
from sluice.kinds.cogroup.numbers import (
    Count,
    HigherMoments,
    Mode,
    Percentile,
    RoundedSum,
    Spread,
    Sum,
    Truth,
)
from sluice.kinds.cogroup.own import Own
from sluice.kinds.cogroup.sketches import DistinctSketch, QuantileSketch

STREAM = "_stream"
ACCUMULATORS: Mapping[str, type[Accumulator]] = {
    "count": Count,
    "sum": Sum,
    "avg": Sum,
    "approx_sum": RoundedSum,
    "approx_avg": RoundedSum,
    "bool_or": Truth,
    "bool_and": Truth,
    "min": Bound,
    "max": Bound,
    "first": End,
    "last": End,
    "collect_list": Listed,
    "collect_set": Collected,
    "count_distinct": CountDistinct,
    "approx_count_distinct": DistinctSketch,
    "approx_percentile": QuantileSketch,
    "approx_top_k": Frequent,
    "mode": Mode,
    **dict.fromkeys(("median", "percentile"), Percentile),
    **dict.fromkeys(("var_pop", "var_samp", "stddev_pop", "stddev_samp"), Spread),
    **dict.fromkeys(("skewness", "kurtosis"), HigherMoments),
}


class CogroupState(Operator):
    """One row per group: rows of each stream, and its accumulators."""

    def __init__(self, view: Table, inputs: Mapping[str, Table], of_stream: Mapping[str, str]):
        """Take `inputs` by id; `of_stream` gives each stream's input id."""
        assert isinstance(view.spec, Cogroup)
        self.spec = view.spec
        self.inputs = tuple(dict.fromkeys(of_stream.values()))
        self._view, self._tables, self._of_stream = view, inputs, of_stream
        self.is_session = bool(self.spec.window and self.spec.window.type == "session")
        windowed = (START, END) if self.spec.window else ()
        self.by = (*windowed, *self.spec.key)
        self.group = self.spec.key if self.is_session else self.by
        self.key = (*windowed[:1], *self.spec.key)
        if self.spec.retention and self.spec.window:
            times = {i: self._times(i) for i in self.inputs}
            self.retention = Retention(self.spec.retention, times)

    @property
    def is_mergeable(self) -> bool:
        """True if a batch can merge changes into the state."""
        return not self.is_session

    @property
    def breaking(self) -> tuple[str, ...]:
        """Aggregates, as written, whose state can't apply some removals."""
        return tuple(a.aggregate.text for a in self.accumulators if a.can_break)

    @property
    def weight(self) -> int:
        return max((a.weight for a in self.accumulators), default=1)

    @property
    def totals(self) -> tuple[str, ...]:
        return tuple(a.aggregate.text for a in self.accumulators if a.can_overflow)

    @property
    def row_counts(self) -> tuple[str, ...]:
        """Columns that count the rows of each stream."""
        return tuple(map(rows_column, self.spec.streams))

    @property
    def stored(self) -> tuple[str, ...]:
        """Columns of the state."""
        return (*self.by, *self.row_counts, *(a.name for a in self.accumulators))

    def only(
        self, streams: Collection[str], aggregates: Mapping[str, Collection[str]] | None = None
    ) -> "CogroupState":
        """Return the state of only these streams, and only of `aggregates` if given."""
        chosen = {name: s for name, s in self.spec.streams.items() if name in streams}
        for name, columns in (aggregates or {}).items():
            kept = {c: a for c, a in chosen[name].aggregates.items() if c in columns}
            chosen[name] = chosen[name].model_copy(update={"aggregates": kept})
        spec = self.spec.model_copy(update={"streams": chosen})
        of_stream = {name: self._of_stream[name] for name in chosen}
        return CogroupState(replace(self._view, spec=spec), self._tables, of_stream)

    @cached_property
    def accumulators(self) -> tuple[Accumulator, ...]:
        """Accumulators of every aggregate of every stream, in order."""
        found = list[Accumulator]()
        for name, stream in self.spec.streams.items():
            ties = self._tables[self._of_stream[name]].key
            for column, aggregate in stream.aggregates.items():
                kind = Own if aggregate.is_python else ACCUMULATORS[aggregate.function]
                found.append(kind(name, column, stream.in_order(aggregate), ties))
        return tuple(found)

    def agreements(self, output: StructType) -> Mapping[str, ColumnEquality]:
        return {
            a.name: partial(a.agrees, kept=output[a.name].dataType)
            for a in self.accumulators
            if a.is_approximate
        }

    def columns(self, name: str) -> tuple[str, ...]:
        used: set[str] = set()
        for stream_name, stream in self.streams_of(name):
            time = self._time(stream)
            used |= {time} if time else set()
            expressions = [*stream.key, *([stream.where] if stream.where else [])]
            for accumulator in self.accumulators:
                if accumulator.stream == stream_name:
                    expressions += accumulator.expressions
                    used |= set(accumulator.used_ties)
            visible = self._tables[name].columns
            used |= set().union(*(e.reads(visible) for e in expressions))
        return tuple(sorted(used or self._tables[name].key))

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        keys = [zip(stream.key, self.spec.key, strict=True) for _, stream in self.streams_of(name)]
        found = [{e.plain_column: k for e, k in pairs if e.plain_column} for pairs in keys]
        return found if all(found) else ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        extra = passed_on(rows, self.columns(name))
        return union([self._prepare(s, rows, extra) for s, _ in self.streams_of(name)])

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        rows = self._merge_streams(prepared)
        if self.is_session:
            rows = windows.sessions(rows, self.spec.key, self.spec.window)
        return self._settle(rows)

    def combine_in_ranges(self, prepared: InputRows, ranges: int) -> DataFrame:
        """Combine in ranges of the key, each in its order. One shuffle; not for sessions."""
        rows, arguments = pack_rows(self._merge_streams(prepared), self.accumulators)
        spread = rows.repartitionByRange(ranges, *names(self.key))
        return self._settle(spread.withColumns(dict(arguments))).sortWithinPartitions(
            *names(self.key)
        )

    def _merge_streams(self, prepared: InputRows) -> DataFrame:
        """Return the rows of all streams; where all are one group, with a row of no stream."""
        rows = union(list(prepared.values()))
        if not self.spec.is_of_all:
            return rows
        stream = next(iter(self.spec.streams.values()))
        keys = [F.expr(e.sql).alias(k) for k, e in zip(self.spec.key, stream.key, strict=True)]
        of_none = F.lit(None).cast("string").alias(STREAM)
        return union([rows, rows.sparkSession.range(1).select(*keys, of_none)])

    def _settle(self, rows: DataFrame) -> DataFrame:
        gathered = self.gather(rows, F.lit(1))
        types = {f.name: f.dataType for f in gathered.schema.fields}
        settled = [
            present(a, a.settle(None, delta(a), types[delta_name(a)])) for a in self.accumulators
        ]
        found = gathered.select(*names((*self.by, *self.row_counts)), *settled)
        return found if self.spec.is_of_all else found.where(self.has_any_rows())

    def keep_groups(self, old: DataFrame, new: DataFrame) -> DataFrame:
        if not self.spec.keep_empty:
            return new
        same = [F.col(f"o.`{c}`").eqNullSafe(F.col(f"n.`{c}`")) for c in self.by]
        lost = old.alias("o").join(new.alias("n"), reduce(Column.__and__, same), "left_anti")
        types = {f.name: f.dataType for f in new.schema.fields}
        nothing = [F.lit(None).cast(types[a.name]).alias(a.name) for a in self.accumulators]
        zeros = [F.lit(0).cast("bigint").alias(c) for c in self.row_counts]
        return new.unionByName(lost.select(*names(self.by), *zeros, *nothing))

    def _prepare(self, name: str, rows: DataFrame, extra: list[str]) -> DataFrame:
        stream = self.spec.streams[name]
        kept = rows.where(F.expr(stream.where.sql)) if stream.where else rows
        time = self._time(stream)
        timed = [F.col(f"`{time}`").cast("timestamp").alias(windows.TIME)] if time else []
        keys = [F.expr(e.sql).alias(k) for k, e in zip(self.spec.key, stream.key, strict=True)]
        arguments = [a.argument() for a in self.accumulators if a.stream == name]
        taken = kept.select(*timed, *keys, F.lit(name).alias(STREAM), *arguments, *extra)
        return self._assign_windows(taken)

    def _assign_windows(self, rows: DataFrame) -> DataFrame:
        """Put rows with TIME into windows; a session's are found once all rows are together."""
        if self.spec.window is None:
            return rows
        if self.is_session:
            timed = rows.where(F.col(windows.TIME).isNotNull())
            return timed.withColumn(END, windows.alone(self.spec.window))
        return windows.assign(rows, self.spec.window, windows.TIME).drop(windows.TIME)

    def gather(self, rows: DataFrame, weight: Column) -> DataFrame:
        """Return the rows of each stream and their contributions, by group. One shuffle."""
        counts = [
            F.sum(F.when(F.col(STREAM) == s, weight).otherwise(0)).cast("bigint")
            for s in self.spec.streams
        ]
        contributions = [
            accumulator.gather(weight, value).alias(delta_name(accumulator))
            for accumulator, value in self._values(rows).items()
        ]
        named = [n.alias(c) for n, c in zip(counts, self.row_counts, strict=True)]
        return rows.groupBy(*names(self.by)).agg(*named, *contributions)

    def apart(self, rows: DataFrame) -> DataFrame:
        """Split equal rows of a prepared change if an aggregate takes them one by one."""
        if not any(a.takes_one_by_one(value) for a, value in self._values(rows).items()):
            return rows
        sign, times = F.signum(WEIGHT).cast("bigint"), F.abs(WEIGHT).cast("int")
        return rows.withColumn(WEIGHT, F.explode(F.array_repeat(sign, times)))

    def _values(self, rows: DataFrame) -> Mapping[Accumulator, DataType]:
        """Return the accumulators whose argument is in prepared rows, with its type."""
        arguments = {f.name: f.dataType for f in rows.schema.fields}
        found = {a: arguments[a.name] for a in self.accumulators if a.name in arguments}
        return {
            a: type_["v"].dataType for a, type_ in found.items() if isinstance(type_, StructType)
        }

    def has_any_rows(self) -> Column:
        """True, for a row of the state, if any stream has rows in the group."""
        return F.greatest(*[rows > 0 for rows in names(self.row_counts)], F.lit(False))

    def streams_of(self, name: str) -> list[tuple[str, Stream]]:
        return [(s, d) for s, d in self.spec.streams.items() if self._of_stream[s] == name]

    def _times(self, name: str) -> tuple[str, ...]:
        times = (self._time(stream) for _, stream in self.streams_of(name))
        return tuple(dict.fromkeys(time for time in times if time))

    def _time(self, stream: Stream) -> str | None:
        return (stream.time or self.spec.window.time) if self.spec.window else None


def rows_column(stream: str) -> str:
    """Return the state column that counts a stream's rows."""
    return f"_rows_{stream}"


def has_rows(accumulator: Accumulator) -> Column:
    """True, for a row of the state, if the accumulator's stream has rows in the group."""
    return F.col(f"`{rows_column(accumulator.stream)}`") > 0


def present(accumulator: Accumulator, state: Column) -> Column:
    """Return the state, null if its stream has no row."""
    return F.when(has_rows(accumulator), state).alias(accumulator.name)


def delta_name(accumulator: Accumulator) -> str:
    """Return the name of the column of gathered contributions."""
    return f"_delta_{accumulator.name}"


def delta(accumulator: Accumulator) -> Column:
    """Return that column."""
    return F.col(f"`{delta_name(accumulator)}`")


def pack_rows(
    rows: DataFrame, accumulators: tuple[Accumulator, ...]
) -> tuple[DataFrame, Mapping[str, Column]]:
    """Return `rows` with shared columns for their arguments, and the new arguments.

    Prepared rows have a column for the argument of every aggregate, null except for those of their
    own stream. For the shuffle they become as narrow as possible: equal arguments of one stream
    become one, and arguments of different streams share a column if they have the same type.
    """
    schema = rows.schema
    types = {a.name: schema[a.name].dataType.simpleString() for a in accumulators}
    places = {a.name: _place(a, accumulators, types) for a in accumulators}
    shared: dict[str, list[str]] = {}
    for name, place in places.items():
        shared.setdefault(place, []).append(name)
    others = [f"`{c}`" for c in rows.columns if c not in places]
    columns = [F.coalesce(*[F.col(f"`{n}`") for n in names]) for names in shared.values()]
    found = rows.select(*others, *[c.alias(p) for c, p in zip(columns, shared, strict=True)])
    of_stream = {a.name: a.stream for a in accumulators}
    return found, {
        name: F.when(F.col(STREAM) == of_stream[name], F.col(f"`{place}`")).alias(name)
        for name, place in places.items()
    }


def _place(
    accumulator: Accumulator, every: tuple[Accumulator, ...], types: Mapping[str, str]
) -> str:
    """Return the name of the column that it shares: its type, and its number within its stream."""
    type_ = types[accumulator.name]
    own = (a for a in every if a.stream == accumulator.stream and types[a.name] == type_)
    meanings = dict.fromkeys(a.meaning for a in own)
    return f"_{type_}_{list(meanings).index(accumulator.meaning)}"


def trace_rows(operator: Operator, groups: Groups) -> InputRows:
    """Return the streams' rows of each group, or the state's row of each row."""
    if not isinstance(operator, CogroupState):
        prepared, key = groups.prepared.items(), operator.key
        return {name: within(found, groups.rows, key) for name, found in prepared}
    if not operator.is_session:
        return groups.prepared
    time, start, end = (f"_in.{windows.TIME}", f"_of.{START}", f"_of.{END}")
    met = same("_in", "_of", operator.group) & F.col(time).between(F.col(start), F.col(end))
    rows = groups.rows.alias("_of")
    return {n: f.alias("_in").join(rows, met, "left_semi") for n, f in groups.prepared.items()}
