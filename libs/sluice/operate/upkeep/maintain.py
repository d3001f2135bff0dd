"""Upkeep of a pipeline's tables and their internal tables, without settings.

Upkeep seals closed slices, and files those with many files again. It deletes files and commits that
nobody needs. It starts Spark only for rows whose order matters.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head_as_found
from sluice.delta.notes.note_tables import clean_rows
from sluice.delta.places import dropped, environments
from sluice.delta.places.folders import remove_table
from sluice.delta.places.inventory import leftovers
from sluice.delta.places.lake_layout import layout
from sluice.delta.places.overlay import previews
from sluice.delta.upkeep.log_cleaning import clean_log
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.upkeep.vacuum import vacuum
from sluice.engine.committing.upkeep import Kept, keyed, refile
from sluice.engine.context import Context
from sluice.engine.planning.nodes import nodes_of
from sluice.language.internal import ENVIRONMENTS, INTERVALS, QUARANTINE, internal
from sluice.operate.definitions.redefined import redefined_parts
from sluice.operate.upkeep.guard import oldest_logged, oldest_named
from sluice.spark.session import Spark


@dataclass(frozen=True)
class Upkeep:
    """Upkeep of one table: what was done, and to how many of its files.

    `done`: seal, compact or vacuum; log: deleted commits; remove: a table that a changed
    query no longer uses; deleted: a table dropped a week ago, or an expired environment.
    """

    table: str
    done: str
    files: int


def maintain(spark: Spark, project: Project, tables: Iterable[Table]) -> list[Upkeep]:
    """Do all upkeep due in these tables and those behind them. Changes no visible row."""
    tables = list(tables)
    every = [kept for table in tables for kept in kept_in(table, project)]
    done = [upkeep for kept in every for upkeep in _done(kept, spark, project)]
    done += [upkeep for table in tables for upkeep in _of_notes(table, project)]
    removed = _remove_leftovers(project, tables)
    done += [Upkeep(table_id, "remove", files) for table_id, files in removed]
    previews(layout(project))
    expired = dropped.expire(layout(project), datetime.now(UTC))
    expired += (
        f"{ENVIRONMENTS}/{name}" for name in environments.expire(layout(project), datetime.now(UTC))
    )
    return [*done, *(Upkeep(name, "deleted", 0) for name in expired)]


def kept_in(table: Table, project: Project) -> Iterator[Kept]:
    """Yield the Delta tables that hold a table's rows."""
    if not table.is_stored:
        return
    context, nodes = Context.of(project), {n.id: n for n in nodes_of(table, project.graph)}
    for table_id in dict.fromkeys([table.id, *nodes]):
        node = nodes.get(table_id)
        yield node.kept.of(context, node) if node else keyed(context, table_id, table.key)
    for name, key in table.spec.delivered_beside.items():
        yield keyed(context, internal(table.id, name), key)


def _of_notes(table: Table, project: Project) -> Iterator[Upkeep]:
    """Clean the small tables without a position that note deliveries."""
    if not table.is_delivered:
        return
    for suffix in (INTERVALS, QUARANTINE):
        uri, most = layout(project).uri(table.id, suffix), project.limits.loose_files
        if files := clean_rows(uri, most):
            yield Upkeep(internal(table.id, suffix), "vacuum", files)


def _done(kept: Kept, spark: Spark, project: Project) -> Iterator[Upkeep]:
    """Take each step on the head that the step before it made."""
    steps: Mapping[str, Callable[[Filing], int]] = {
        "seal": lambda filing: refile(filing, spark, kept.unsealed(filing), "seal"),
        "compact": lambda filing: refile(filing, spark, kept.crowded(filing), "compact"),
        "vacuum": lambda filing: _vacuum(filing, project, kept),
        "log": lambda filing: _clean(filing, project, kept),
    }
    for name, step in steps.items():
        if (filing := kept.filing) and (files := step(filing)):
            yield Upkeep(kept.table, name, files)


def _vacuum(filing: Filing, project: Project, kept: Kept) -> int:
    oldest = oldest_named(project, kept.table, filing.before)
    return vacuum(filing.before, oldest, datetime.now(UTC))


def _clean(filing: Filing, project: Project, kept: Kept) -> int:
    oldest = oldest_logged(project, kept.table, filing.before)
    return clean_log(kept.uri, oldest, datetime.now(UTC))


def _remove_leftovers(project: Project, tables: Iterable[Table]) -> Iterator[tuple[str, int]]:
    """Remove internal tables that views no longer use; yield each with its number of files.

    A view that is not rebuilt yet keeps them, because its change may be taken back.
    """
    lake = layout(project)
    for table_id, view in leftovers(project, tables).items():
        at = head_as_found(lake.uri(view.id))
        if at and at.is_filled and not redefined_parts(project, view):
            yield table_id, remove_table(lake.uri(table_id))
