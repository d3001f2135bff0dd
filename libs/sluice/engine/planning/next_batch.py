"""The next batch of a table in words, as `sluice plan` shows it.

Rows of touched groups that a batch reads again, found before it runs.

A feed of few rows may touch groups of many. The log shows what is read of small tables. In a larger
one, the touched groups of a small feed are looked up by their columns; no other column is read.
`sluice plan` shows the result, and a batch chooses its engine by it.

Engine of a batch before it runs, found by compiling the batch over tables without rows.

A plan does this: no file of a table is opened, no Spark started. Values may still send the batch to
Spark, such as an overflow or more rows than this process takes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from sluice.delta.log.files import FeedSize, table_size
from sluice.delta.log.position import REBUILD, head_as_found
from sluice.delta.reading.local import to_arrow
from sluice.delta.reading.searched_version import SearchedVersion
from sluice.delta.writing.marking import most_marked
from sluice.engine.computing.batch import recorded_horizon
from sluice.engine.computing.batch_plan import BatchPlan, Strategy, as_rows, settle
from sluice.engine.computing.rows import GroupColumns
from sluice.engine.context import Context
from sluice.engine.judging import judge
from sluice.engine.planning.nodes import Node
from sluice.engine.planning.plan import rebuild_size
from sluice.engine.query.windows import Horizon
from sluice.language.interval import Span
from sluice.limits import Limits
from sluice.spark.rehearsing import engine_of
from sluice.spark.session import left_to_spark

WIDER = 4  # times the bytes of others that a feed of few rows may have in this process


class Bound(StrEnum):
    """Meaning of a number of rows."""

    EXACT = "exact"
    UP_TO = "up to"  # all rows that may be of the groups
    MORE_THAN = "more than"  # no more were counted


@dataclass(frozen=True)
class RowsRead:
    """Rows of one table that are read for touched groups, and the files that may hold them."""

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
        rows = "all rows" if self.rows is None else f"{bound}{self.rows:,} rows"
        return f"{rows} in {self.bytes / 1e6:,.1f} MB"


@dataclass(frozen=True)
class TouchedGroups:
    """Reads of a batch's touched groups, by table: its inputs, and the table itself.

    `count`: number of groups; None if it was not looked up.
    """

    reads: Mapping[str, RowsRead] = field(default_factory=dict)
    count: int | None = None

    @property
    def size(self) -> FeedSize:
        """Size of all that is read for the groups, at most."""
        return sum((read.size for read in self.reads.values()), FeedSize())

    @property
    def text(self) -> str:
        """The same in words."""
        whose = "touched" if self.count is None else f"{self.count:,} touched"
        reads = " and ".join(f"{read} of {table}" for table, read in self.reads.items())
        return f"{whose} group{'' if self.count == 1 else 's'}: {reads}"

    def are_many(self, limits: Limits) -> bool:
        """True if one table surely has more rows of the groups than this process takes."""
        known = [r for r in self.reads.values() if r.bound != Bound.UP_TO]
        return any(r.bound == Bound.MORE_THAN or not _is_few(r.rows, limits) for r in known)

    def are_few(self, limits: Limits) -> bool:
        """True if no table has more rows of the groups than this process takes."""
        reads = self.reads.values()
        return all(r.bound != Bound.MORE_THAN and _is_few(r.rows, limits) for r in reads)


def touched_groups(context: Context, node: Node, plan: BatchPlan) -> TouchedGroups | None:
    """Return what a batch reads again for its touched groups; None if it recomputes none."""
    before, operator = plan.before, node.operator
    if plan.strategy != Strategy.RECOMPUTE or not plan.is_pending or before is None:
        return None
    limits, own = context.limits, {c: c for c in operator.group}
    named = {i: operator.named(i) for i in operator.inputs} | {node.id: [own] if own else []}
    at = {i: (context.lake.uri(i), plan.pins[i].version) for i in operator.inputs}
    tables = {
        i: SearchedVersion(*place, limits, sorted({c for one in named[i] for c in one}))
        for i, place in (at | {node.id: (plan.uri, before.version)}).items()
    }
    is_searched = any(tables[i].is_large and named[i] for i in operator.inputs)
    groups = _groups(context, node, plan) if is_searched else None
    reads = {i: _rows_to_read(table, groups, named[i], limits) for i, table in tables.items()}
    return TouchedGroups(reads, None if groups is None else groups.num_rows)


def why_not_here(limits: Limits, plan: BatchPlan, touched: TouchedGroups | None) -> str:
    """Return why a batch is too large for this process, in words; '' if it is small enough.

    A feed of few wide rows may be larger than others, if the groups that it touches are small.
    """
    size = plan.size
    if touched and touched.are_many(limits):
        return f"more than {limits.interpreted_rows:,} rows of touched groups are read at once"
    if size.bytes <= limits.computed_here_bytes:
        return ""
    is_short = _is_short(size, limits) and size.bytes <= WIDER * limits.computed_here_bytes
    if touched and touched.are_few(limits) and is_short:
        return ""
    return f"{size.bytes / 1e6:,.1f} MB are read at once"


def touched_if_in_doubt(context: Context, node: Node, plan: BatchPlan) -> TouchedGroups | None:
    """Return the touched groups only if the engine may depend on them."""
    if plan.size.bytes <= context.limits.computed_here_bytes:
        whole = [table_size(context.lake.uri(i), pin.version) for i, pin in plan.pins.items()]
        whole += [table_size(plan.uri, plan.before.version)] if plan.before else []
        if all(_is_few(size.rows, context.limits) for size in whole):
            return None
    return touched_groups(context, node, plan)


def _groups(context: Context, node: Node, plan: BatchPlan) -> pa.Table | None:
    """Return the groups that a small feed touches; None if it may be large, or only Spark knows.

    Groups that expire or return are not of the feed.
    """
    limits, operator = context.limits, node.operator
    if operator.retention or plan.pins.keys() - plan.recorded.keys():
        return None
    if plan.size.bytes > limits.read_here_bytes and not _is_short(plan.size, limits):
        return None
    from sluice.interpreter.local_session import Session, interpreting

    try:
        with interpreting(Session(limits.interpreted_rows)) as session:
            batch = node.batch(context, session, plan, 0)  # type: ignore[arg-type] # a client
            most = limits.picked_groups
            groups = to_arrow(batch.touched(batch.changes(), {}).limit(most + 1))
    except (*left_to_spark(), OSError, pa.ArrowException):
        return None
    return groups if groups.num_rows <= most else None


def _rows_to_read(
    table: SearchedVersion, groups: pa.Table | None, named: Sequence[GroupColumns], limits: Limits
) -> RowsRead:
    """Return the rows of one table that are of the groups; all of them if it is small."""
    whole = table_size(table.uri, table.version)
    if not table.is_large:
        return RowsRead.of(whole)
    if groups is None or not named:
        return RowsRead.of(whole, Bound.UP_TO)
    wanted = [{c: groups[group] for c, group in columns.items()} for columns in named]
    near = table.near(wanted)
    if near is None or near.bytes > limits.narrowed_bytes:
        return RowsRead.of(near or whole, Bound.UP_TO)
    try:
        found = table.few(wanted, limits.interpreted_rows)
    except (OSError, pa.ArrowException):
        return RowsRead.of(near, Bound.UP_TO)
    if found is None:
        return RowsRead(limits.interpreted_rows, near.bytes, near.files, Bound.MORE_THAN)
    return RowsRead(found.num_rows, near.bytes, near.files)


def _is_short(feed: FeedSize, limits: Limits) -> bool:
    """True if a feed has few rows, however wide."""
    is_few = feed.rows is not None and feed.rows <= limits.handed_rows
    return is_few and feed.bytes <= limits.narrowed_bytes


def _is_few(rows: int | None, limits: Limits) -> bool:
    return rows is not None and rows <= limits.interpreted_rows


def engine_of_batch(context: Context, node: Node, plan: BatchPlan, *, is_small: bool) -> str:
    """Return the engine of a node's planned batch, in the words of its report."""
    return engine_of(context.settings, partial(_compile, context, node, plan), is_small=is_small)


def engine_of_rebuild(context: Context, node: Node, plan: BatchPlan, *, is_known: bool) -> str:
    """Return the engine of a node's rebuild; by its size, unless all columns read are known."""

    def work(session: SparkSession) -> None:
        if is_known:
            _compile(context, node, replace(plan, before=None), session)

    is_small = rebuild_size(plan).bytes <= context.limits.computed_here_bytes
    return engine_of(context.settings, work, is_small=is_small)


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


MARKED = "up to {} changed rows are marked; more, or rows in few files, rewrite these files"


@dataclass(frozen=True)
class NextBatch:
    """Next batch of one table.

    `pending`: input -> versions (from, to]. `rows`, `bytes`, `files`: sizes of what is read,
    at most; `touched`: the part of it that is read again for touched groups, by table.
    `engine`: as the batch's report will name it, unless a value decides otherwise; of several
    deliveries, that of the largest. `joins`: dimension -> how it is joined to the facts. A source's
    intervals: `missing` between delivered ones, `due` since they ended, `changed` in their files,
    `gone` without files now.
    """

    table: str
    next: str
    reason: str = ""
    engine: str = ""
    pending: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    references: Mapping[str, int] = field(default_factory=dict)
    joins: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    bytes: int = 0
    files: int = 0
    touched: Mapping[str, RowsRead] = field(default_factory=dict)
    missing: tuple[Span, ...] = ()
    due: tuple[Span, ...] = ()
    changed: tuple[Span, ...] = ()
    gone: tuple[Span, ...] = ()

    @property
    def is_most(self) -> bool:
        """True if less may be read than the sizes say."""
        return any(read.bound == Bound.UP_TO for read in self.touched.values())


def with_marking(context: Context, batch: NextBatch, key: Sequence[str]) -> NextBatch:
    """Return the batch with how few changed rows leave a large table's files as they are."""
    at = head_as_found(context.lake.uri(batch.table))
    if at is None or batch.next == REBUILD or context.settings.commit == "spark":
        return batch
    most = min(most_marked(at, key, context.limits), context.settings.small_changelog)
    said = MARKED.format(f"{most:,}")
    return replace(batch, reason=f"{batch.reason}; {said}") if most else batch
