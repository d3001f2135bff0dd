"""Removal of the tables that an earlier, longer query of a view has left behind."""

from collections.abc import Iterable, Iterator

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head_as_found
from sluice.delta.places.folders import remove_table
from sluice.delta.places.inventory import leftovers
from sluice.delta.places.lake import layout
from sluice.operate.redefined import redefined_parts


def remove_leftovers(project: Project, tables: Iterable[Table]) -> Iterator[tuple[str, int]]:
    """Remove what views have left behind; yield each table and its number of files.

    A view that is not rebuilt yet keeps them, because its change may be taken back.
    """
    lake = layout(project)
    for table_id, view in leftovers(project, tables).items():
        at = head_as_found(lake.uri(view.id))
        if at and at.is_filled and not redefined_parts(project, view):
            yield table_id, remove_table(lake.uri(table_id))
