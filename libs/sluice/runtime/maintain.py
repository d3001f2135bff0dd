"""Upkeep of a pipeline's tables, the internal ones behind them included, with nothing to tune.

Window stores: expired slices are dropped, closed ones sealed, and a slice that grows is filed anew
by the dozen files. Where none expires, past slices with few rows become longer ones. Tables with a
key are filed by it when many files have come. Files that nobody needs any more are deleted. Spark
is started only where there are enough rows for their order to matter, or slices to be made longer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sluice.limits import Limits
from sluice.operators.order import Direction
from sluice.operators.retention import first_visible
from sluice.operators.window_store import WindowStoreRows
from sluice.quality import facts
from sluice.runtime.aside import QUARANTINE
from sluice.runtime.delivery import INTERVALS
from sluice.runtime.guard import oldest_named
from sluice.runtime.nodes import DELIVERIES, STATE, Node, internal, nodes_of
from sluice.runtime.session import Spark
from sluice.specs.dimension import Dimension
from sluice.specs.project import Project
from sluice.specs.table import Table
from sluice.storage.arrow import clean_rows
from sluice.storage.filing import Slice, files_for, is_in_order
from sluice.storage.lake import layout
from sluice.storage.maintenance import Filing
from sluice.storage.position import head_as_found
from sluice.storage.regrouping import due
from sluice.storage.vacuum import vacuum


@dataclass(frozen=True)
class Upkeep:
    """What was done to one table, and to how many of its files.

    `done`: expiry, gather, seal, compact or vacuum.
    """

    table: str
    done: str
    files: int


def maintain(spark: Spark, project: Project, tables: Iterable[Table]) -> list[Upkeep]:
    """All that is due in these tables and in those behind them. Changes no row that is visible."""
    tables = list(tables)
    every = [kept for table in tables for kept in kept_in(table, project)]
    done = [upkeep for kept in every for upkeep in _done(kept, spark, project)]
    return [*done, *(upkeep for table in tables for upkeep in _of_notes(table, project))]


def tidy(spark: Spark, project: Project, node: Node) -> None:
    """After a batch: file the slices of a window store anew that have gathered a dozen files."""
    if isinstance(node.operator, WindowStoreRows):
        kept = _kept(project, node.id, node)
        if filing := kept.filing:
            _regroup(filing, spark, kept)
        if filing := kept.filing:
            _refile(filing, spark, kept.crowded(filing), "compact")


@dataclass(frozen=True)
class Kept:
    """A Delta table that is looked after.

    `order` is that of its files, none without a key; `partition` the column of its slices.
    """

    table: str
    uri: str
    limits: Limits
    order: tuple[Direction, ...] = ()
    partition: str | None = None
    store: WindowStoreRows | None = None

    @property
    def filing(self) -> Filing | None:
        """The table at its head; None where there is none, or foreign commits changed its rows."""
        before = head_as_found(self.uri)
        if before is None or before.position is None:
            return None
        return Filing(before, self.limits, self.order, self.partition)

    def crowded(self, filing: Filing) -> list[Slice]:
        """The slices that have too many files, or whose rows a batch has put together unordered."""
        if self.store:
            return [s for s in filing.slices if len(s.paths) >= self.limits.slice_files]
        return [s for s in filing.slices if self._is_crowded(s)]

    def _is_crowded(self, slice_: Slice) -> bool:
        most = files_for(slice_.row_count, self.limits) + self.limits.loose_files
        return len(slice_.paths) >= most or (bool(self.order) and slice_.is_lumped(self.limits))

    def unsealed(self, filing: Filing) -> list[Slice]:
        """The slices before the newest that are not one sorted file, or few: rows came late."""
        closed = filing.slices[:-1] if self.store else []
        return [s for s in closed if self._is_unsealed(s)]

    def _is_unsealed(self, slice_: Slice) -> bool:
        if len(slice_.paths) > slice_.sealed_files(self.limits):
            return True
        if slice_.is_small(self.limits):
            return False
        return not is_in_order(self.uri, slice_.paths, self.order[0].column)


def kept_in(table: Table, project: Project) -> Iterator[Kept]:
    """The Delta tables that hold a table's rows."""
    if not table.is_stored:
        return
    nodes = {node.id: node for node in nodes_of(table, project.graph)}
    for table_id in dict.fromkeys([table.id, *nodes]):
        yield _kept(project, table_id, nodes.get(table_id), table.key)
    if table.kind == "source" and nodes:
        yield _kept(project, internal(table.id, DELIVERIES))
    if isinstance(table.spec, Dimension) and table.spec.is_log:
        yield _kept(project, internal(table.id, STATE), key=table.spec.identity)


def _kept(
    project: Project, table_id: str, node: Node | None = None, key: Sequence[str] = ()
) -> Kept:
    order = node.operator.file_order if node else tuple(map(Direction, key))
    store = node.operator if node and isinstance(node.operator, WindowStoreRows) else None
    shown = tuple(d for d in order if not d.column.startswith("_sluice_i"))
    partition = node.partition_by[0] if node and node.partition_by else None
    uri = layout(project).uri(table_id)
    return Kept(table_id, uri, project.limits, shown and order, partition, store)


def _of_notes(table: Table, project: Project) -> Iterator[Upkeep]:
    """What is noted of deliveries, in small tables without a position."""
    if table.kind not in ("source", "dimension"):
        return
    for suffix in (facts.SUFFIX, INTERVALS, QUARANTINE):
        if files := clean_rows(layout(project).uri(table.id, suffix), project.limits.loose_files):
            yield Upkeep(internal(table.id, suffix), "vacuum", files)


def _done(kept: Kept, spark: Spark, project: Project) -> Iterator[Upkeep]:
    """Each step goes on the head that the one before it has made."""
    steps: Mapping[str, Callable[[Filing], int]] = {
        "expiry": lambda filing: _expire(filing, kept),
        "gather": lambda filing: _regroup(filing, spark, kept),
        "seal": lambda filing: _refile(filing, spark, kept.unsealed(filing), "seal"),
        "compact": lambda filing: _refile(filing, spark, kept.crowded(filing), "compact"),
        "vacuum": lambda filing: _vacuum(filing, project, kept),
    }
    for name, step in steps.items():
        if (filing := kept.filing) and (files := step(filing)):
            yield Upkeep(kept.table, name, files)


def _refile(filing: Filing, spark: Spark, slices: Sequence[Slice], kind: str) -> int:
    """By Spark where there are enough rows for their order to matter."""
    large = [s for s in slices if filing.order and not s.is_small(filing.limits)]
    small = [s for s in slices if s not in large]
    done = filing.compact(small, kind) if small else 0
    if large and done and (after := head_as_found(filing.before.uri)):
        filing = replace(filing, before=after)
    return done + (filing.refile(spark.tune(small=False), large, kind) if large else 0)


def _regroup(filing: Filing, spark: Spark, kept: Kept) -> int:
    """By Spark: rows get another slice."""
    if not kept.store or not kept.store.is_gathered or not (slices := filing.slices):
        return 0
    found = due(slices, kept.store.grain.digits, kept.limits)
    if not found.slices:
        return 0
    number = kept.store.filed_in(found.longer).slice_number()
    return filing.regroup(spark.tune(small=False), found, number)


def _expire(filing: Filing, kept: Kept) -> int:
    position, store = filing.before.position, kept.store
    if not store or not store.retention or not position or not position.horizon:
        return 0
    earliest = first_visible(position.horizon, store.retention.keep)
    return filing.drop(store.grain.number(earliest), store.grain.begin(earliest))


def _vacuum(filing: Filing, project: Project, kept: Kept) -> int:
    oldest = oldest_named(project, kept.table, filing.before)
    return vacuum(filing.before, oldest, datetime.now(UTC))
