"""Upkeep of a pipeline's tables and their internal tables, without settings.

Upkeep seals closed slices, and files those with many files again. It deletes files and commits that
nobody needs. It starts Spark only for rows whose order matters.

Oldest version of a table that may still be read; upkeep deletes nothing that it needs.

A view's position names the versions of its inputs that it reflects. Its next batch reads the feeds
from there, and `verify` reads their rows as of then. A view whose rows keep the dimension
versions of their batches names each of those until it is rebuilt. An environment is compared with
the versions that it began with.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.declare.table_spec import Expectation
from sluice.delta.log.position import REBUILD, Head, Position, head_as_found, positions
from sluice.delta.note_tables import clean_rows
from sluice.delta.places import lake_layout, overlay
from sluice.delta.places.folders import remove_table
from sluice.delta.places.lake_layout import LakeLayout, layout, leftovers
from sluice.delta.places.overlay import previews, read_environment
from sluice.delta.reading.searching import index_files
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.upkeep.maintenance import Filing, clean_log, vacuum
from sluice.engine.batch_plan import Context
from sluice.engine.plan import Node, nodes_of
from sluice.engine.upkeep import Kept, kept_by_key, refile
from sluice.gate.gate import Gate
from sluice.gate.results import ExpectationOutcome
from sluice.language.names import ENVIRONMENTS, INTERVALS, QUARANTINE, internal
from sluice.operate.rebuild import redefined_parts
from sluice.report.sweep import sweep as sweep_table
from sluice.report.sweep import whole_table
from sluice.spark.session import Spark


def oldest_named(project: Project, table_id: str, at: Head) -> int:
    """Return the oldest version that a consumer names; the table's head if none names one."""
    named = [version for _, version in consumers(project, table_id, at.table)]
    began = read_environment(layout(project).root) if project.environment else None
    first = began.tables.get(table_id) if began else None
    if first and first.table == at.table:
        named.append(first.version)
    return min(named, default=at.version)


def oldest_logged(project: Project, table_id: str, at: Head) -> int:
    """Return the oldest version whose commit is needed: by a consumer, or by the table itself.

    A batch was computed from an earlier version, and the log shows what came between. A table whose
    rows keep dimension versions needs the commits of all batches since it was rebuilt.
    """
    assert at.position is not None, "only tables with a position are maintained"
    own = at.position.after or 0
    if at.position.references:
        rebuilt = (v for v, position in positions(at.uri) if position.kind == REBUILD)
        own = min(own, next(rebuilt, 0))
    return min(own, oldest_named(project, table_id, at))


def consumers(project: Project, table_id: str, delta_id: str) -> Iterator[tuple[str, int]]:
    """Yield the consumers of a table, and the versions that they name."""
    lake = layout(project)
    for table in project.graph.tables.values():
        for node in nodes_of(table, project.graph):
            for position in _positions(lake, node):
                pin = {**position.references, **position.inputs}.get(table_id)
                if pin and pin.table == delta_id:
                    yield node.id, pin.version


def _positions(lake: LakeLayout, node: Node) -> Iterator[Position]:
    """Yield the node's own position, and those of its batches whose references still count.

    If the log was cleaned, nobody knows their versions: it might be any.
    """
    at = head_as_found(lake.uri(node.id))
    if at is None or at.position is None:
        return
    yield at.position
    if not at.position.references:
        return
    known = positions(at.uri)
    for _, position in known:
        yield replace(position, inputs={})
        if position.kind == REBUILD:
            return
    if known[-1][0] > 0:
        every = {i: replace(pin, version=0) for i, pin in at.position.references.items()}
        yield replace(at.position, references=every)


@dataclass(frozen=True)
class Swept:
    """Result of sweeping one table: its expectations of the whole table, and the unmet ones."""

    table: str
    expectations: int
    unmet: tuple[str, ...]


def sweep(spark: Spark, project: Project, table: Table, run: str = "") -> Swept:
    """Check everything that is expected of the whole table. Safe to repeat.

    Spark is started only if an expectation needs it.
    """

    def judge(
        uri: str, version: int, expected: Sequence[Expectation]
    ) -> Sequence[ExpectationOutcome]:
        rows = snapshot(spark.tune(small=False), uri, version, project.limits)
        gate = Gate(table.id, tuple(expected))
        return gate.check(gate.split(rows.select(*table.columns))).outcomes

    unmet = sweep_table(project, table, judge=judge, run=run)
    return Swept(table.id, len(whole_table(table)), unmet)


@dataclass(frozen=True)
class Upkeep:
    """Upkeep of one table: what was done, and to how many of its files.

    `done`: seal, compact, vacuum or index; log: deleted commits; remove: a table that a changed
    query no longer uses; deleted: a table dropped a week ago, or an expired environment.
    """

    table: str
    done: str
    files: int


def maintain(spark: Spark, project: Project, tables: Iterable[Table]) -> list[Upkeep]:
    """Do all upkeep due in these tables and those behind them. Changes no visible row."""
    tables = list(tables)
    every = [kept for table in tables for kept in kept_in(table, project)]
    done = [upkeep for kept in every for upkeep in _take_steps(kept, spark, project)]
    done += [upkeep for table in tables for upkeep in _clean_notes(table, project)]
    done += _remove_leftovers(project, tables)
    lake, now = layout(project), datetime.now(UTC)
    previews(lake)
    done += [Upkeep(name, "deleted", 0) for name in lake_layout.expire(lake, now)]
    expired = overlay.expire(lake, now)
    return [*done, *(Upkeep(f"{ENVIRONMENTS}/{name}", "deleted", 0) for name in expired)]


def kept_in(table: Table, project: Project) -> Iterator[Kept]:
    """Yield the Delta tables that hold a table's rows."""
    if not table.is_stored:
        return
    context, nodes = Context.of(project), {n.id: n for n in nodes_of(table, project.graph)}
    for table_id in dict.fromkeys([table.id, *nodes]):
        node = nodes.get(table_id)
        yield node.kept.of(context, node) if node else kept_by_key(context, table_id, table.key)
    for name, key in table.spec.delivered_beside.items():
        yield kept_by_key(context, internal(table.id, name), key)


def _clean_notes(table: Table, project: Project) -> Iterator[Upkeep]:
    """Clean the small tables without a position that note deliveries."""
    if not table.is_delivered:
        return
    for suffix in (INTERVALS, QUARANTINE):
        uri, most = layout(project).uri(table.id, suffix), Kept.loose_files
        if files := clean_rows(uri, most):
            yield Upkeep(internal(table.id, suffix), "vacuum", files)


def _take_steps(kept: Kept, spark: Spark, project: Project) -> Iterator[Upkeep]:
    """Take each step on the head that the step before it made."""
    steps: Mapping[str, Callable[[Filing], int]] = {
        "seal": lambda filing: refile(filing, spark, kept.find_unsealed(filing), "seal"),
        "compact": lambda filing: refile(filing, spark, kept.find_crowded(filing), "compact"),
        "vacuum": lambda filing: vacuum(
            filing.before, oldest_named(project, kept.table, filing.before), datetime.now(UTC)
        ),
        "log": lambda filing: clean_log(
            kept.uri, oldest_logged(project, kept.table, filing.before), datetime.now(UTC)
        ),
        "index": lambda filing: index_files(kept.uri, filing.before.version),
    }
    for name, step in steps.items():
        if (filing := kept.filing) and (files := step(filing)):
            yield Upkeep(kept.table, name, files)


def _remove_leftovers(project: Project, tables: Iterable[Table]) -> Iterator[Upkeep]:
    """Remove internal tables that views no longer use.

    A view that is not rebuilt yet keeps them, because its change may be taken back.
    """
    lake = layout(project)
    for table_id, view in leftovers(project, tables).items():
        at = head_as_found(lake.uri(view.id))
        if at and at.is_filled and not redefined_parts(project, view):
            yield Upkeep(table_id, "remove", remove_table(lake.uri(table_id)))
