"""Choice of the engine of a batch before it runs, by its size and by what it computes.

A feed of few rows may need many rows of other tables, for the groups that it touches. Each kind
names these tables, and the columns by which it finds its rows. The log shows how much is read of
small tables. In a larger one, the values of a small feed are looked up; no other column is read.

A plan also compiles the batch over tables without rows. No file of a table is opened, and no Spark
is started. Values may still send the batch to Spark, such as an overflow or more rows than this
process takes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluice.delta.log.files import FeedSize, table_size
from sluice.delta.reading.local import to_arrow
from sluice.delta.reading.searching import SearchedVersion
from sluice.delta.reading.wanted import WantedValues
from sluice.engine.batch import Reread, recorded_horizon, touched_by_feeds
from sluice.engine.batch_plan import BatchPlan, Context, as_rows, settle
from sluice.engine.judging import judge
from sluice.engine.plan import Node, rebuild_size
from sluice.engine.windows import Horizon
from sluice.limits import Limits
from sluice.spark.engine import engine_of, left_to_spark, too_large

Values = Callable[[Callable[..., DataFrame]], pa.Table | None]


class Bound(StrEnum):
    """Meaning of a number of rows."""

    EXACT = "exact"
    UP_TO = "up to"  # all rows that may be read
    IF_NEEDED = "if needed, up to"  # the same, unless the batch finds that it needs none
    MORE_THAN = "more than"  # no more were counted


@dataclass(frozen=True)
class RowsRead:
    """Rows of one table that are read again, and the files that may hold them."""

    rows: int | None
    bytes: int
    files: int
    bound: Bound = Bound.EXACT

    @classmethod
    def of(cls, size: FeedSize, bound: Bound = Bound.EXACT) -> "RowsRead":
        """Return all rows of files."""
        return cls(size.rows, size.bytes, size.files, bound)

    @property
    def size(self) -> FeedSize:
        """The same as a size; rows are unknown if more were not counted."""
        rows = None if self.bound == Bound.MORE_THAN else self.rows
        return FeedSize(self.bytes, self.files, rows)

    def __str__(self) -> str:
        bound = "" if self.bound == Bound.EXACT else f"{self.bound} "
        rows = f"{bound}all rows" if self.rows is None else f"{bound}{self.rows:,} rows"
        return f"{rows} in {self.bytes / 1e6:,.1f} MB"


@dataclass(frozen=True)
class TouchedGroups:
    """Rows that a batch reads for its touched groups, by table: inputs, references, its own table.

    `count`: number of groups; None if it was not looked up.
    """

    reads: Mapping[str, RowsRead] = field(default_factory=dict)
    count: int | None = None

    @property
    def size(self) -> FeedSize:
        """Size of all that is surely read for the groups, at most."""
        sure = (read for read in self.reads.values() if read.bound != Bound.IF_NEEDED)
        return sum((read.size for read in sure), FeedSize())

    @property
    def text(self) -> str:
        """The same in words."""
        whose = "touched" if self.count is None else f"{self.count:,} touched"
        reads = " and ".join(f"{read} of {table}" for table, read in self.reads.items())
        return f"{whose} group{'' if self.count == 1 else 's'}: {reads}"

    def are_many(self, limits: Limits) -> bool:
        """True if one table surely has more rows of the groups than this process takes."""
        reads = self.reads.values()
        is_counted = any(r.bound == Bound.EXACT and not _is_few(r.rows, limits) for r in reads)
        return is_counted or any(r.bound == Bound.MORE_THAN for r in reads)


def why_not_here(limits: Limits, plan: BatchPlan, touched: TouchedGroups | None) -> str:
    """Return why a batch is too large for this process, in words; '' if it is small enough."""
    if touched and touched.are_many(limits):
        return f"more than {limits.reread_rows:,} rows of touched groups are read at once"
    return too_large(plan.size.bytes, limits.computed_here_bytes)


def touched_if_in_doubt(context: Context, node: Node, plan: BatchPlan) -> TouchedGroups | None:
    """Return the touched groups only if the engine may depend on them."""
    if plan.size.bytes <= context.limits.computed_here_bytes:
        counted = (r.table for r in _rereads(context, node, plan) if r.is_counted)
        sizes = (table_size(*_place(context, plan, table)) for table in counted)
        if all(_is_few(size.rows, context.limits) for size in sizes):
            return None
    return touched_groups(context, node, plan, is_estimated=True)


def engine_of_batch(context: Context, node: Node, plan: BatchPlan, why: str) -> str:
    """Return the engine of a node's planned batch, in the words of its report."""
    return engine_of(context.settings, partial(_compile, context, node, plan), why)


def engine_of_rebuild(context: Context, node: Node, plan: BatchPlan, *, is_known: bool) -> str:
    """Return the engine of a node's rebuild; by its size, unless all columns read are known."""

    def work(session: SparkSession) -> None:
        if is_known:
            _compile(context, node, replace(plan, before=None), session)

    limits = context.limits.for_weight(node.operator.weight)
    why = too_large(rebuild_size(plan).bytes, limits.computed_here_bytes)
    return engine_of(context.settings, work, why)


def _compile(context: Context, node: Node, plan: BatchPlan, session: SparkSession) -> None:
    """Compute a batch over no rows, up to its commit. Raises UnsupportedLocally."""
    number = plan.before.next_batch if plan.before else 1
    batch = node.batch(context, session, plan, number, _horizon(plan))
    changelog = settle(session, batch.result()).changelog
    if node.expectations:
        judge(node, as_rows(session, changelog))


def _horizon(plan: BatchPlan) -> Horizon | None:
    """Return a horizon that does not move, so the batch takes its normal path."""
    retention = plan.node.operator.retention
    if retention is None:
        return None
    return recorded_horizon(plan) or Horizon(retention, None, None)


def touched_groups(
    context: Context, node: Node, plan: BatchPlan, *, is_estimated: bool = False
) -> TouchedGroups | None:
    """Return what a batch reads again for its touched groups; None if it reads only its feeds.

    `is_estimated`: rows are not counted if the files that may hold them, or their indexes, show
    that they are few.
    """
    rereads = _rereads(context, node, plan)
    if not rereads:
        return None
    values = cache(partial(_values, context, node, plan))
    reads = {r.table: _rows_to_read(context, plan, r, values, is_estimated) for r in rereads}
    is_by_group = any(r.columns and r.by is touched_by_feeds for r in rereads)
    groups = values(touched_by_feeds) if is_by_group and values.cache_info().currsize else None
    return TouchedGroups(reads, None if groups is None else groups.num_rows)


def _rereads(context: Context, node: Node, plan: BatchPlan) -> tuple[Reread, ...]:
    is_following = plan.is_pending and plan.before is not None and bool(plan.ranges)
    return node.batch.rereads(context, plan) if is_following else ()


def _place(context: Context, plan: BatchPlan, table: str) -> tuple[str, int]:
    if plan.before is not None and table == plan.node.id:
        return plan.uri, plan.before.version
    return context.lake.uri(table), plan.looked_up[table].version


def _values(
    context: Context, node: Node, plan: BatchPlan, by: Callable[..., DataFrame]
) -> pa.Table | None:
    """Return the rows of `by` for a small feed; None if it may be large, or only Spark knows.

    Groups that expire or return are not of the feed.
    """
    limits, operator = context.limits, node.operator
    if operator.retention or plan.pins.keys() - plan.recorded.keys():
        return None
    is_few = plan.size.rows is not None and plan.size.rows <= limits.handed_rows
    most = limits.collected_bytes if is_few else limits.read_here_bytes
    if plan.size.bytes > max(most, limits.read_here_bytes):
        return None
    from sluice.interpreter.local_session import Session, interpreting

    try:
        with interpreting(Session(limits.held_bytes)) as session:
            batch = node.batch(context, session, plan, 0)  # type: ignore[arg-type] # a client
            most = limits.handed_rows
            found = to_arrow(by(batch).limit(most + 1))
    except (*left_to_spark(), OSError, pa.ArrowException):
        return None
    return found if found.num_rows <= most else None


def _rows_to_read(
    context: Context, plan: BatchPlan, reread: Reread, values: Values, is_estimated: bool
) -> RowsRead:
    """Return the rows that a batch reads again of one table; all of them if it is small."""
    limits, place = context.limits, _place(context, plan, reread.table)
    columns, whole = reread.columns, table_size(*place)
    table = SearchedVersion(*place, limits, sorted({c for one in columns or () for c in one}))
    most = Bound.UP_TO if reread.is_sure else Bound.IF_NEEDED
    if columns is None or not table.is_large:
        return RowsRead.of(whole, Bound.EXACT if reread.is_counted else most)
    found = values(reread.by) if columns else None
    if found is None:
        return RowsRead.of(whole, most)
    wanted = [{c: found[name] for c, name in one.items()} for one in columns]
    near = table.size_near(wanted)
    if near is not None and reread.is_sure and reread.is_unique:
        return replace(RowsRead.of(near, most), rows=found.num_rows)
    is_enough = not reread.is_sure or (is_estimated and near and _is_few(near.rows, limits))
    if near is None or near.bytes > limits.computed_here_bytes or is_enough:
        return RowsRead.of(near or whole, most)
    if is_estimated and _is_few(rows := table.most_rows(wanted), limits):
        return replace(RowsRead.of(near, most), rows=rows)
    return _count(table, wanted, near)


def _count(table: SearchedVersion, wanted: Sequence[WantedValues], near: FeedSize) -> RowsRead:
    """Count the rows with these values in the files that may hold them."""
    most = table.limits.reread_rows
    try:
        rows = table.find_at_most(wanted, most)
    except (OSError, pa.ArrowException):
        return RowsRead.of(near, Bound.UP_TO)
    if rows is None:
        return RowsRead(most, near.bytes, near.files, Bound.MORE_THAN)
    return RowsRead(rows.num_rows, near.bytes, near.files)


def _is_few(rows: int | None, limits: Limits) -> bool:
    return rows is not None and rows <= limits.reread_rows
