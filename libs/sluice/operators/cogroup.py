"""Cogroup: many streams into one row per key, by one shuffle.

After KIP-150 (Kafka Streams' cogroup), with retractions. The view is kept in two tables: the state
holds what each stream has accumulated for a key; the visible view is a function of one state row.
Where all aggregates are additive a batch reads only the feed and the touched state; otherwise it
recomputes the touched groups from the inputs.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sluice.changelog.net import WEIGHT
from sluice.operators import windows
from sluice.operators.aggregates import COLLECTIONS, COUNTS, Accumulator
from sluice.operators.operator import Operator, Retention, Rows, names, passed_on, union
from sluice.specs.cogroup import Cogroup, Stream
from sluice.specs.graph import Table

_STREAM = "_stream"


class CogroupState(Operator):
    """One row per group: rows of each stream, and its accumulators."""

    def __init__(self, view: Table, inputs: Mapping[str, Table], of_stream: Mapping[str, str]):
        """`inputs` by id; `of_stream` gives each stream's input id."""
        assert isinstance(view.spec, Cogroup)
        self.spec = view.spec
        self.inputs = tuple(dict.fromkeys(of_stream.values()))
        self._tables, self._of_stream = inputs, of_stream
        self.is_session = bool(self.spec.window and self.spec.window.type == "session")
        windowed = (windows.START, windows.END) if self.spec.window else ()
        self.by = (*windowed, *self.spec.key)
        self.group = self.spec.key if self.is_session else self.by
        self.key = (*windowed[:1], *self.spec.key)
        if self.spec.retention and self.spec.window:
            times = {i: self._times(i) for i in self.inputs}
            self.retention = Retention(self.spec.retention, times)

    @cached_property
    def is_additive(self) -> bool:
        """Whether a batch can add and subtract, without reading the inputs."""
        return not self.is_session and all(a.is_additive for a in self.accumulators())

    def accumulators(self) -> Iterator[Accumulator]:
        """Every aggregate of every stream, in order."""
        for name, stream in self.spec.streams.items():
            ties = self._tables[self._of_stream[name]].key
            for column, aggregate in stream.aggregates.items():
                yield Accumulator(name, column, aggregate, ties)

    def columns(self, name: str) -> tuple[str, ...]:
        used: set[str] = set()
        for stream_name, stream in self._streams_of(name):
            time = self._time(stream)
            used |= {time} if time else set()
            expressions = [*stream.key, *([stream.where] if stream.where else [])]
            for accumulator in self.accumulators():
                if accumulator.stream == stream_name:
                    expressions += accumulator.expressions
                    used |= set(accumulator.used_ties)
            visible = self._tables[name].columns
            used |= set().union(*(e.reads(visible) for e in expressions))
        return tuple(sorted(used))

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        extra = passed_on(rows, self.columns(name))
        return union([self._prepare(s, rows, extra) for s, _ in self._streams_of(name)])

    def combine(self, prepared: Rows, references: Rows) -> DataFrame:
        rows = union(list(prepared.values()))
        if self.is_session:
            rows = windows.sessions(rows, self.spec.key, self.spec.window)
        state = self._accumulate(rows, weighted=False)
        return state.where(self._alive())

    def change(self, prepared: Rows) -> DataFrame:
        """What the net change adds to each touched group's state, with negative parts.

        Streams of inputs that did not change have no columns in it, but for their row counts.
        """
        return self._accumulate(union(list(prepared.values())), weighted=True)

    def apply(self, old: DataFrame, change: DataFrame) -> DataFrame:
        """The new state of the touched groups: old + change, without the groups that emptied."""
        sums = {f.name: f.dataType for f in old.schema.fields if f.name not in self.by}
        unchanged = [c for c in sums if c not in change.columns]
        zeros = (F.lit(0).cast(sums[c]).alias(c) for c in unchanged)
        both = old.unionByName(change.select("*", *zeros))
        added = [F.sum(F.col(f"`{c}`")).cast(t).alias(c) for c, t in sums.items()]
        return both.groupBy(*names(self.by)).agg(*added).where(self._alive())

    def _prepare(self, name: str, rows: DataFrame, extra: list[str]) -> DataFrame:
        stream = self.spec.streams[name]
        kept = rows.where(F.expr(stream.where.sql)) if stream.where else rows
        time = self._time(stream)
        timed = [F.col(f"`{time}`").cast("timestamp").alias(windows.TIME)] if time else []
        keys = [F.expr(e.sql).alias(k) for k, e in zip(self.spec.key, stream.key, strict=True)]
        arguments = [a.argument() for a in self.accumulators() if a.stream == name]
        taken = kept.select(*timed, *keys, F.lit(name).alias(_STREAM), *arguments, *extra)
        return self._windowed(taken)

    def _windowed(self, rows: DataFrame) -> DataFrame:
        """Rows with TIME in their windows; a session's are found once all rows are together."""
        if self.spec.window is None:
            return rows
        if self.is_session:
            timed = rows.where(F.col(windows.TIME).isNotNull())
            return timed.withColumn(windows.END, windows.alone(self.spec.window))
        return windows.assign(rows, self.spec.window, windows.TIME).drop(windows.TIME)

    def _accumulate(self, rows: DataFrame, weighted: bool) -> DataFrame:
        weight = F.col(WEIGHT) if weighted else F.lit(1)
        mine = [F.when(F.col(_STREAM) == s, weight).otherwise(0) for s in self.spec.streams]
        counts = [
            F.sum(n).cast("bigint").alias(rows_column(s))
            for s, n in zip(self.spec.streams, mine, strict=True)
        ]
        state: list[Column] = []
        present = [a for a in self.accumulators() if a.name in rows.columns]
        for accumulator in present:
            argument = rows.schema[accumulator.name].dataType
            assert isinstance(argument, StructType)
            state += accumulator.state(argument["v"].dataType, weighted)
        return rows.groupBy(*names(self.by)).agg(*counts, *state)

    def _alive(self) -> Column:
        rows = [F.col(f"`{rows_column(s)}`") > 0 for s in self.spec.streams]
        return F.greatest(*rows, F.lit(False))

    def _streams_of(self, name: str) -> list[tuple[str, Stream]]:
        return [(s, d) for s, d in self.spec.streams.items() if self._of_stream[s] == name]

    def _times(self, name: str) -> tuple[str, ...]:
        times = (self._time(stream) for _, stream in self._streams_of(name))
        return tuple(dict.fromkeys(time for time in times if time))

    def _time(self, stream: Stream) -> str | None:
        return (stream.time or self.spec.window.time) if self.spec.window else None


class CogroupView(Operator):
    """The visible columns, from one state row each."""

    row_wise = True
    mirror = True

    def __init__(self, state: CogroupState, state_id: str):
        self.state = state
        self.inputs = (state_id,)
        self.key = state.key
        self.group = state.group

    def columns(self, name: str) -> tuple[str, ...]:
        return ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        return rows

    def combine(self, prepared: Rows, references: Rows) -> DataFrame:
        rows = prepared[self.inputs[0]]
        values = [self._value(a, rows.schema).alias(a.name) for a in self.state.accumulators()]
        visible = rows.select(*names(self.state.by), *values)
        selected = self.state.spec.select
        if selected is None:
            return visible
        return visible.select(
            *names(self.state.by), *[F.expr(e.sql).alias(n) for n, e in selected.items()]
        )

    def _value(self, accumulator: Accumulator, state: StructType) -> Column:
        value = accumulator.finish(state)
        stream = accumulator.stream
        given = self.state.spec.streams[stream].initial
        initial = given.get(accumulator.name, _initial(accumulator))
        if initial is None:
            return value
        has_rows = F.col(f"`{rows_column(stream)}`") > 0
        empty = F.array() if initial == [] else F.lit(initial)
        return F.when(has_rows, value).otherwise(empty)


def rows_column(stream: str) -> str:
    """The state column that counts a stream's rows."""
    return f"_rows_{stream}"


def _initial(accumulator: Accumulator) -> object:
    if accumulator.aggregate.function in COUNTS:
        return 0
    return [] if accumulator.aggregate.function in COLLECTIONS else None
