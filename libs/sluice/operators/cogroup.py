"""Cogroup: many streams into one row per key, by one shuffle.

After KIP-150 (Kafka Streams' cogroup), with retractions. The view is kept in two tables: the state
holds what each stream has accumulated for a key; the visible view is a function of one state row.
A batch reads the feed and the touched state, and merges the one into the other; only groups whose
state can't take in what went are recomputed from the inputs. Sessions are always recomputed: what
comes and goes moves their bounds.
"""

from collections.abc import Mapping
from functools import cached_property, partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sluice.changelog.net import WEIGHT
from sluice.operators import windows
from sluice.operators.accumulator import Accumulator
from sluice.operators.aggregates import accumulator_of
from sluice.operators.operator import Agreement, Operator, Retention, Rows, names, passed_on, union
from sluice.specs.cogroup import Cogroup, Stream
from sluice.specs.graph import Table

BROKEN = "_broken"
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

    @property
    def is_mergeable(self) -> bool:
        """Whether a batch can merge what changed into the state."""
        return not self.is_session

    @property
    def breaking(self) -> tuple[str, ...]:
        """The aggregates with removals that their state can't take in, as they were written."""
        return tuple(a.aggregate.text for a in self.accumulators if a.can_break)

    @cached_property
    def accumulators(self) -> tuple[Accumulator, ...]:
        """Every aggregate of every stream, in order."""
        return tuple(
            accumulator_of(
                name, column, stream.in_order(aggregate), self._tables[self._of_stream[name]].key
            )
            for name, stream in self.spec.streams.items()
            for column, aggregate in stream.aggregates.items()
        )

    def agreements(self, output: StructType) -> Mapping[str, Agreement]:
        return {
            a.name: partial(a.agrees, kept=output[a.name].dataType)
            for a in self.accumulators
            if a.is_approximate
        }

    def columns(self, name: str) -> tuple[str, ...]:
        used: set[str] = set()
        for stream_name, stream in self._streams_of(name):
            time = self._time(stream)
            used |= {time} if time else set()
            expressions = [*stream.key, *([stream.where] if stream.where else [])]
            for accumulator in self.accumulators:
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
        gathered = self._gather(rows, F.lit(1))
        types = {f.name: f.dataType for f in gathered.schema.fields}
        settled = [
            _present(a, a.settle(None, _delta(a), types[_delta_name(a)])) for a in self.accumulators
        ]
        return gathered.select(*names(self.by), *self._row_counts(), *settled).where(self._alive())

    def change(self, prepared: Rows) -> DataFrame:
        """What the net change contributes to each touched group's state.

        Streams of inputs that did not change have no columns in it, but for their row counts.
        """
        return self._gather(union(list(prepared.values())), F.col(WEIGHT))

    def merge(self, old: DataFrame, change: DataFrame) -> DataFrame:
        """The new state of the touched groups, with BROKEN; without the groups that emptied.

        Rows that are BROKEN stand for groups that are to be recomputed.
        """
        types = {f.name: f.dataType for f in change.schema.fields}
        present = [a for a in self.accumulators if _delta_name(a) in types]
        absent = [a for a in self.accumulators if a not in present]
        pairs = {a.name: a.merge(_state(a), _delta(a), types[_delta_name(a)]) for a in present}
        merged = (
            old.unionByName(change, allowMissingColumns=True)
            .groupBy(*names(self.by))
            .agg(
                *[F.sum(n).cast("bigint").alias(c) for c, n in self._named_row_counts().items()],
                *[was.alias(name) for name, (was, _) in pairs.items() if was is not None],
                *[pairs[a.name][1].alias(_delta_name(a)) for a in present],
                *[F.first(_state(a), ignorenulls=True).alias(a.name) for a in absent],
            )
        )
        settled = {
            a: a.settle(
                _state(a) if pairs[a.name][0] is not None else None,
                _delta(a),
                types[_delta_name(a)],
            )
            for a in present
        }
        states = [_present(a, settled.get(a, _state(a))) for a in self.accumulators]
        broken = [_has_rows(a) & a.breaks(_state(a), _delta(a)) for a in present if a.can_break]
        is_broken = reduce(Column.__or__, broken, F.lit(False)).alias(BROKEN)
        rows = merged.select(*names(self.by), *self._row_counts(), *states, is_broken)
        return rows if self.spec.keep_empty else rows.where(self._alive())

    def remembered(self, old: DataFrame, new: DataFrame) -> DataFrame:
        if not self.spec.keep_empty:
            return new
        same = [F.col(f"o.`{c}`").eqNullSafe(F.col(f"n.`{c}`")) for c in self.by]
        lost = old.alias("o").join(new.alias("n"), reduce(Column.__and__, same), "left_anti")
        types = {f.name: f.dataType for f in new.schema.fields}
        nothing = [F.lit(None).cast(types[a.name]).alias(a.name) for a in self.accumulators]
        zeros = [F.lit(0).cast("bigint").alias(c) for c in self._named_row_counts()]
        return new.unionByName(lost.select(*names(self.by), *zeros, *nothing))

    def _prepare(self, name: str, rows: DataFrame, extra: list[str]) -> DataFrame:
        stream = self.spec.streams[name]
        kept = rows.where(F.expr(stream.where.sql)) if stream.where else rows
        time = self._time(stream)
        timed = [F.col(f"`{time}`").cast("timestamp").alias(windows.TIME)] if time else []
        keys = [F.expr(e.sql).alias(k) for k, e in zip(self.spec.key, stream.key, strict=True)]
        arguments = [a.argument() for a in self.accumulators if a.stream == name]
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

    def _gather(self, rows: DataFrame, weight: Column) -> DataFrame:
        """The rows of each stream and their contributions, by group. One shuffle."""
        counts = [
            F.sum(F.when(F.col(_STREAM) == s, weight).otherwise(0)).cast("bigint")
            for s in self.spec.streams
        ]
        contributions: list[Column] = []
        for accumulator in self.accumulators:
            if accumulator.name in rows.columns:
                argument = rows.schema[accumulator.name].dataType
                assert isinstance(argument, StructType)
                gathered = accumulator.gather(weight, argument["v"].dataType)
                contributions.append(gathered.alias(_delta_name(accumulator)))
        named = [n.alias(c) for n, c in zip(counts, self._named_row_counts(), strict=True)]
        return rows.groupBy(*names(self.by)).agg(*named, *contributions)

    def _named_row_counts(self) -> dict[str, Column]:
        return {rows_column(s): F.col(f"`{rows_column(s)}`") for s in self.spec.streams}

    def _row_counts(self) -> list[Column]:
        return list(self._named_row_counts().values())

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
        values = [self._value(a, rows.schema).alias(a.name) for a in self.state.accumulators]
        visible = rows.select(*names(self.state.by), *values)
        selected = self.state.spec.select
        if selected is None:
            return visible
        return visible.select(
            *names(self.state.by), *[F.expr(e.sql).alias(n) for n, e in selected.items()]
        )

    def _value(self, accumulator: Accumulator, state: StructType) -> Column:
        value = accumulator.finish(_state(accumulator), state[accumulator.name].dataType)
        stream = accumulator.stream
        given = self.state.spec.streams[stream].initial
        initial = given.get(accumulator.name, accumulator.empty)
        if initial is None:
            return value
        empty = F.array() if initial == [] else F.lit(initial)
        return F.when(_has_rows(accumulator), value).otherwise(empty)


def rows_column(stream: str) -> str:
    """The state column that counts a stream's rows."""
    return f"_rows_{stream}"


def _state(accumulator: Accumulator) -> Column:
    return F.col(f"`{accumulator.name}`")


def _has_rows(accumulator: Accumulator) -> Column:
    return F.col(f"`{rows_column(accumulator.stream)}`") > 0


def _present(accumulator: Accumulator, state: Column) -> Column:
    """The state, null where its stream has no row."""
    return F.when(_has_rows(accumulator), state).alias(accumulator.name)


def _delta_name(accumulator: Accumulator) -> str:
    return f"_delta_{accumulator.name}"


def _delta(accumulator: Accumulator) -> Column:
    return F.col(f"`{_delta_name(accumulator)}`")
