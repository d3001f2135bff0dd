"""One batch of one table: it turns changes of the inputs into changes of the table's rows.

The base class does what all kinds share: the whole query, each changed row by itself, or the
touched groups from every input. Each way ends in the same diff, so they can't commit different
results. A kind's batch overrides its special parts. Rows are lazy, except the literal bounds by
which a large scan skips files.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from typing import Any, Generic, Protocol, TypeVar, cast

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes import arrivals, as_inserts, departures, diff, insertions, net, weigh
from sluice.delta.log.files import not_before, table_size
from sluice.delta.log.position import Pin
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.reading.local import snapshot_if_few
from sluice.delta.reading.spark_reads import feed, snapshot
from sluice.delta.writing.own_commits import Committed
from sluice.engine.batch_plan import BatchPlan, BatchResult, Context, Strategy, Way, WholeTable
from sluice.engine.operator import InputRows, Maintained, Operator, names, union, within
from sluice.engine.rows import GroupColumns, Picked, bounds_of, pick
from sluice.engine.windows import Horizon, late_of_change, latest_time
from sluice.language.interval import EPOCH
from sluice.language.names import OF_FEED

Op_co = TypeVar("Op_co", bound=Operator, covariant=True)


class Extension(Protocol):
    """A definition with parts added or removed, for a table that keeps the rest of its rows."""

    @property
    def plan(self) -> BatchPlan:
        """A plan pinned to the versions that the kept columns reflect."""

    def rows(self, batch: "Batch[Operator]") -> DataFrame:
        """Return the whole table by today's definition."""


@dataclass(frozen=True)
class Reread:
    """Rows of a table that a batch reads besides its feeds.

    `columns`: alternatives, each of them columns of the table -> columns of the rows that `by`
    returns for a batch, with the same values. Without one, no column shows which rows are read;
    None if all rows are. `is_unique`: at most one is read for each row of `by`. `is_sure`: False if
    the batch may find that it needs none.
    """

    table: str
    columns: Sequence[GroupColumns] | None
    by: Callable[[Any], DataFrame]
    is_unique: bool = False
    is_sure: bool = True

    @property
    def is_counted(self) -> bool:
        """True if the rows are surely read, and may be many for few rows of `by`."""
        return self.is_sure and not self.is_unique


def touched_by_feeds(batch: "Batch[Operator]") -> DataFrame:
    """Return the groups that a batch's feeds touch."""
    return batch.find_touched(batch.changes(), {})


@dataclass(frozen=True)
class Batch(Generic[Op_co]):
    """One plan in one session.

    `number` is the batch number in its commit; `horizon` is for views with retention. Rows cached
    for the changelog are released when `held` is closed.
    """

    context: Context
    session: SparkSession
    plan: BatchPlan
    number: int
    horizon: Horizon | None = None
    held: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def way(cls, plan: BatchPlan, lake: LakeLayout) -> Way:
        """Return the strategy by which a planned batch follows the feeds, and its reason."""
        operator = plan.node.operator
        if operator.row_wise and plan.ranges.keys() <= set(operator.inputs):
            return Strategy.ROW_WISE, "each output row comes from one changed row"
        return Strategy.RECOMPUTE, "touched groups are computed from the inputs"

    @classmethod
    def rereads(cls, context: Context, plan: BatchPlan) -> tuple[Reread, ...]:
        """Return what a batch that follows the feeds reads of its inputs and its own table."""
        if plan.strategy != Strategy.RECOMPUTE:
            return ()
        operator = plan.node.operator
        own = Reread(plan.node.id, same_names(operator.group), touched_by_feeds)
        inputs = (Reread(i, operator.map_to_group(i), touched_by_feeds) for i in operator.inputs)
        return (*inputs, own)

    @classmethod
    def joins(cls, context: Context, plan: BatchPlan) -> Mapping[str, str]:
        """Return how each reference is joined, as text."""
        return {}

    @classmethod
    def remarks(cls, context: Context, plan: BatchPlan) -> tuple[str, ...]:
        """Return notes on the joins for a reader of the plan."""
        return ()

    @classmethod
    def extension(cls, node: Maintained, lake: LakeLayout) -> Extension | None:
        """Return the extension from the table's definition to the node's; None: rebuild it."""
        return None

    def result(self) -> BatchResult:
        """Return the minimal changelog, and how it was found."""
        return self.build() if self.is_whole else self.compute_changes()

    @property
    def is_whole(self) -> bool:
        """True if all rows are computed."""
        return self.plan.strategy == Strategy.BUILD

    def build(self) -> BatchResult:
        """Compute the changelog by the whole query."""
        whole = self.whole()
        rows = self.add_extra_columns(whole.rows)
        if self.plan.before is not None:
            changelog = diff(self.current(), rows, self.operator.key, ignore=self.plan.node.ignored)
            return BatchResult(changelog, expired=whole.expired)
        return BatchResult(
            insertions(rows),
            expired=whole.expired,
            is_projection=self.operator.mirror,
            is_filed=whole.is_filed,
        )

    def compute_changes(self) -> BatchResult:
        """Compute the changelog from the inputs' feeds."""
        changes = self.changes()
        if self.plan.strategy == Strategy.ROW_WISE:
            return self._row_wise(changes)
        return self.recompute_groups(changes)

    def recompute_table(self, rows: DataFrame) -> DataFrame:
        """Return the rows that a table holding `rows` should hold."""
        return self.query()

    def query(self) -> DataFrame:
        """Return the defining query at the plan's versions."""
        return self.keep_living(self.operator.query(self.snapshots(), self.references()))

    def whole(self) -> WholeTable:
        """Compute all rows by the query, and count the rows that arrived too late."""
        if self.alive is None:
            return WholeTable(self.query())
        inputs = self.snapshots().items()
        every = {n: as_inserts(r, self.operator.columns(n) or r.columns) for n, r in inputs}
        came = [self.operator.prepare(n, rows) for n, rows in every.items()]
        return WholeTable(self.query(), self.count_late(came))

    def count_late(self, prepared: Iterable[DataFrame]) -> int:
        """Count the rows of a prepared change that arrived for expired windows. One Spark job."""
        return 0 if self.alive is None else count_of(late_of_change(prepared, self.alive))

    def add_extra_columns(self, rows: DataFrame) -> DataFrame:
        """Add the table's extra columns to output rows."""
        return rows

    def count_late_changes(
        self, changes: InputRows, snapshots: InputRows, touched: DataFrame, alive: Column
    ) -> DataFrame:
        """Return one row with the number of rows that arrived for expired windows, or null."""
        return late_of_change([self.operator.prepare(n, c) for n, c in changes.items()], alive)

    @property
    def operator(self) -> Op_co:
        return cast(Op_co, self.plan.node.operator)

    @property
    def has_fallen(self) -> bool:
        """True if windows may come back; no feed reports that."""
        return self.horizon is not None and self.horizon.has_fallen

    @property
    def alive(self) -> Column | None:
        """Condition for living windows; None without retention."""
        return self.horizon.is_alive() if self.horizon else None

    def keep_living(self, rows: DataFrame) -> DataFrame:
        """Leave out rows that have expired."""
        return rows if self.alive is None else rows.where(self.alive)

    def changes(self, part: Operator | None = None) -> dict[str, DataFrame]:
        """Return the net change of every input that moved; for a new input, its whole table.

        `part`: an operator that needs only some of the columns.
        """
        lake, plan, changes = self.context.lake, self.plan, {}
        limits, operator = self.context.limits, part or self.operator
        for input_id, pin in plan.pins.items():
            columns = operator.columns(input_id)
            if input_id in plan.ranges:
                rows = feed(self.session, lake.uri(input_id), *plan.ranges[input_id], limits)
                own = [c for c in rows.columns if c not in OF_FEED]
                is_net = plan.strategy == Strategy.ROW_WISE and input_id in plan.growing
                changes[input_id] = (weigh if is_net else net)(rows, columns or own)
            elif input_id not in plan.recorded:
                rows = snapshot(self.session, lake.uri(input_id), pin.version, limits)
                changes[input_id] = as_inserts(rows, columns or rows.columns)
        return changes

    def current(self) -> DataFrame:
        """Return the table's rows at its head."""
        assert self.plan.before is not None
        at, limits = self.plan.before, self.context.limits
        return snapshot(self.session, self.plan.uri, at.version, limits)

    def current_of(self, groups: DataFrame) -> DataFrame:
        """Return the table's rows of these groups, and those of groups that have expired."""
        operator, current = self.operator, self.current()
        if self.horizon and self.alive is not None:
            expired = self.horizon.expired_groups(operator, current)
            groups = union([groups, expired]).distinct()
        return within(current, groups, operator.group)

    def snapshots(self, part: Operator | None = None) -> dict[str, DataFrame]:
        """Return the inputs at the pinned versions; with `part`, only the inputs that it reads."""
        operator, pins = part or self.operator, self.plan.pins
        session, context = self.session, self.context
        return {i: snapshot_at(session, context, operator, i, pins[i]) for i in operator.inputs}

    def references(self) -> InputRows:
        """Return the references at the pinned versions."""
        return {}

    def bounds(self, touched: DataFrame, part: Operator | None = None) -> Column | None:
        """Return a condition that the touched groups meet, if inputs are large.

        `part`: an operator that reads only some of the inputs.
        """
        lake, limits = self.context.lake, self.context.limits
        operator = part or self.operator
        pins = {i: self.plan.pins[i] for i in operator.inputs}
        sizes = (table_size(lake.uri(i), pin.version).bytes for i, pin in pins.items())
        is_large = max(sizes) > limits.read_here_bytes
        return bounds_of(touched, operator.group) if is_large else None

    def warnings_of(self, done: Committed) -> tuple[str, ...]:
        """Return warnings about the rows that the batch has committed."""
        return ()

    def hold(self, rows: DataFrame) -> DataFrame:
        """Cache `rows` in Spark, to compute them only once."""
        kept = rows.persist()
        self.held.callback(kept.unpersist)
        return kept

    def pick_needed(self, snapshots: InputRows) -> InputRows:
        """Return the inputs' rows that rows of the new table may come from."""
        return snapshots

    def _row_wise(self, changes: InputRows) -> BatchResult:
        """Compute each output row from the one changed row that it comes from.

        Old rows are not computed if the new ones certainly replace none.
        """
        operator = self.operator
        come = {n: operator.prepare(n, arrivals(c)) for n, c in changes.items()}
        new = self.add_extra_columns(self.keep_living(operator.combine(come, {})))
        if self.plan.growing == changes.keys():
            return BatchResult(insertions(new), is_projection=True)
        gone = {n: operator.prepare(n, departures(c)) for n, c in changes.items()}
        old = self.keep_living(operator.combine(gone, {}))
        return BatchResult(diff(old, new, operator.key))

    def recompute_groups(self, changes: InputRows) -> BatchResult:
        """Compute the touched groups from every input."""
        operator, snapshots = self.operator, self.snapshots()
        touched = self.find_touched(changes, snapshots)
        if few := self._pick(touched):
            touched, rows, current, bounds = few.touched, few.inputs, few.current, None
        else:
            bounds = self.bounds(touched)
            rows, current = snapshots, self.current()
        found = operator.recompute(self.pick_needed(rows), self.references(), touched, bounds)
        old = within(current if bounds is None else current.where(bounds), touched, operator.group)
        expired = 0
        if self.alive is not None:
            expired = count_of(self.count_late_changes(changes, snapshots, touched, self.alive))
        new = self.add_extra_columns(self.keep_living(operator.keep_groups(old, found)))
        changelog = diff(old, new, operator.key, ignore=self.plan.node.ignored)
        return BatchResult(changelog, expired=expired)

    def _pick(self, touched: DataFrame) -> Picked | None:
        """Pick the touched groups' rows. If rows expire, a scan by time is the cheaper way."""
        if self.horizon is not None:
            return None
        return pick(self.context, self.plan, touched, self.operator)

    def find_touched(self, changes: InputRows, snapshots: InputRows) -> DataFrame:
        """Return the groups whose rows may differ."""
        operator = self.operator
        own = {n: c for n, c in changes.items() if n in operator.inputs}
        groups = [operator.find_touched(own)] if own else []
        if self.horizon and self.alive is not None:
            groups += self._find_crossed(snapshots, self.horizon)
        return union(groups).distinct() if operator.group else groups[0]

    def _find_crossed(self, snapshots: InputRows, horizon: Horizon) -> list[DataFrame]:
        operator = self.operator
        crossed = [horizon.expired_groups(operator, self.current())]
        if horizon.has_fallen:
            prepared = {n: operator.prepare(n, rows) for n, rows in snapshots.items()}
            crossed.append(horizon.returning_groups(operator, prepared))
        return crossed


def same_names(group: tuple[str, ...]) -> Sequence[GroupColumns]:
    """Return the columns by which a table holds the rows of a group under its own names."""
    return [{column: column for column in group}] if group else []


def count_of(late: DataFrame) -> int:
    """Return the one number in the row that `windows.late_of_change` returns; 0 for null.

    One Spark job.
    """
    return int(late.collect()[0][0] or 0)


def snapshot_at(
    session: SparkSession, context: Context, operator: Operator, input_id: str, pin: Pin
) -> DataFrame:
    """Return one input at its pinned version."""
    uri, columns = context.lake.uri(input_id), operator.columns(input_id)
    rows = snapshot(session, uri, pin.version, context.limits, columns)
    return rows.select(*names(columns)) if columns else rows


def horizon_of(session: SparkSession, context: Context, plan: BatchPlan) -> Horizon | None:
    """Return the horizon of the plan's view; None without retention. Takes one Spark job."""
    operator, retention = plan.node.operator, plan.node.operator.retention
    if retention is None:
        return None
    late = {name: _late_rows(session, context, plan, name) for name in operator.inputs}
    rows = latest_time(late, retention)
    latest = rows.selectExpr("unix_micros(horizon) AS micros").collect()[0].micros
    position = plan.before.position if plan.before else None
    now = None if latest is None else EPOCH + timedelta(microseconds=latest)
    return Horizon(retention, position.horizon if position else None, now)


def _late_rows(
    session: SparkSession, context: Context, plan: BatchPlan, input_id: str
) -> DataFrame:
    """Return rows that include those with an input's latest times; few files are opened."""
    operator, pin, limits = plan.node.operator, plan.pins[input_id], context.limits
    assert operator.retention is not None
    columns = operator.retention.times.get(input_id, ())
    uri = context.lake.uri(input_id)
    known = {column: not_before(uri, pin.version, column) for column in columns}
    bounds = {column: time for column, time in known.items() if time and time.tzinfo}
    if len(bounds) < len(columns) or not columns:
        return snapshot_at(session, context, operator, input_id, pin)
    late = [pc.field(column) >= pc.scalar(time) for column, time in bounds.items()]
    where = reduce(pc.Expression.__or__, late)
    few = snapshot_if_few(session, uri, pin.version, where, limits, list(columns))
    if few is not None:
        return few
    late = [F.col(f"`{column}`") >= F.lit(time) for column, time in bounds.items()]
    rows = snapshot_at(session, context, operator, input_id, pin)
    return rows.where(reduce(Column.__or__, late))


def recorded_horizon(plan: BatchPlan) -> Horizon | None:
    """Return the horizon in the table's position."""
    retention = plan.node.operator.retention
    if retention is None or plan.before is None or plan.before.position is None:
        return None
    at = plan.before.position.horizon
    return Horizon(retention, at, at)
