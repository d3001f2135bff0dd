"""Invariants of a project's tables, which hold whatever has happened; checked without Spark.

    1  a view equals its query at the versions in its position      `sluice.operate.verify`
    2  its change feed, folded from the beginning, gives its rows   `faults`
    3  the versions that it records never go back and never skip    `faults`
    4  a rerun of a finished run adds no version                    `versions`
    5  intervals in any order, split or repeated, end in the same   `digests`
    6  rows read = rows accepted + rows quarantined                 `faults`

`sluice verify` reports 1, 2, 3 and 6 of a lake as it is; 4 and 5 compare lakes, or one lake at
different times.
"""

from collections.abc import Iterable, Iterator, Mapping

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.notes.intervals import deliveries
from sluice.delta.places.lake_layout import layout
from sluice.delta.upkeep.digest import Digest
from sluice.delta.upkeep.table_invariants import (
    count_faults,
    digest,
    feed_faults,
    position_faults,
    rows_by,
)
from sluice.engine.planning.nodes import nodes_of
from sluice.language.hidden_columns import INTERVAL
from sluice.language.internal import INTERVALS
from sluice.operate.upkeep.maintain import kept_in


def faults(project: Project, table: Table) -> dict[str, tuple[str, ...]]:
    """Return the faults of each built Delta table that holds the table's rows."""
    found = {}
    for table_id in stored_ids(project, [table]):
        uri = layout(project).uri(table_id)
        faults_here = (*position_faults(uri), *feed_faults(uri), *_counts(project, table, table_id))
        found[table_id] = faults_here
    return found


def versions(project: Project, tables: Iterable[Table]) -> dict[str, int]:
    """Return the current version of each of their Delta tables."""
    heads = {i: head(layout(project).uri(i)) for i in stored_ids(project, tables)}
    return {table_id: at.version for table_id, at in heads.items() if at}


def digests(project: Project, tables: Iterable[Table]) -> dict[str, Digest]:
    """Return the canonical hash of each of their Delta tables whose rows depend on the data alone.

    States with spare rows are left out, because those rows depend on earlier batches. So does the
    number of the batch that joined a row to dimensions; it is ignored.
    """
    found: dict[str, Digest] = {}
    for table in tables:
        nodes = {node.id: node for node in nodes_of(table, project.graph)}
        for table_id in stored_ids(project, [table]):
            node = nodes.get(table_id)
            if node is None or not node.operator.has_slack:
                ignored = node.ignored if node else ()
                found[table_id] = digest(layout(project).uri(table_id), ignore=ignored)
    return found


def stored_ids(project: Project, tables: Iterable[Table]) -> list[str]:
    """Return the ids of the Delta tables that have been built."""
    kept = [k for table in tables for k in kept_in(table, project)]
    return [k.table for k in kept if exists(k.uri)]


def _counts(project: Project, table: Table, table_id: str) -> Iterator[str]:
    """Yield the faults that the notes of deliveries show in the table that they went to."""
    uri, spec = layout(project).uri(table_id), table.spec
    noted = deliveries(layout(project).uri(table.id, INTERVALS))
    if spec.is_by_interval or spec.is_followed:
        if table_id == table.delivered_to:
            stored: Mapping[object, int] = rows_by(uri, INTERVAL)
            yield from count_faults(noted, stored, repeats=bool(spec.delivered_beside))
    elif table_id == table.id:
        yield from count_faults(noted)
