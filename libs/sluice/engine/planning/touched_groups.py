"""Rows of touched groups that a batch reads again, found before it runs.

A feed of few rows may touch groups of many. The log shows what is read of small tables. In a larger
one, the touched groups of a small feed are looked up by their columns; no other column is read.
`sluice plan` shows the result, and a batch chooses its engine by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa

from sluice.delta.log.feed_size import FeedSize, table_size
from sluice.delta.reading.local import to_arrow
from sluice.delta.reading.searched_version import SearchedVersion
from sluice.engine.computing.batch_plan import BatchPlan, Strategy
from sluice.engine.computing.picking import GroupColumns
from sluice.engine.context import Context
from sluice.engine.planning.node import Node
from sluice.limits import Limits
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
    reads = {i: _read(table, groups, named[i], limits) for i, table in tables.items()}
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


def _read(
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
