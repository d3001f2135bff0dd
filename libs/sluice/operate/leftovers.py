"""Tables that an earlier, longer query of a view has left behind.

They are the view's own, `<view>__3` or `<view>__state`, and no part of it any more. Nothing reads
them.
"""

import re
from collections.abc import Iterable, Iterator

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head_as_found
from sluice.delta.places.folders import remove_table
from sluice.delta.places.inventory import stored
from sluice.delta.places.lake import layout
from sluice.engine.planning.nodes import nodes_of
from sluice.language.internal import MARK, STATE
from sluice.operate.redefined import redefined_parts

WHAT = "an earlier query of {} has left it behind, and nothing reads it"
REPAIR = "`sluice maintain {}` removes it"
PART = re.compile(rf"(.+?){MARK}(?:{STATE}|\d+(?:{MARK}.*)?)")


def leftovers(project: Project, tables: Iterable[Table]) -> dict[str, Table]:
    """Return the tables that views among these have left behind, by id. Reads only listings."""
    views = {table.id: table for table in tables if table.is_view}
    if not views:
        return {}
    found: dict[str, Table] = {}
    for table_id in sorted(stored(layout(project))):
        part = PART.fullmatch(table_id)
        view = views.get(part[1]) if part else None
        if view and table_id not in {node.id for node in nodes_of(view, project.graph)}:
            found[table_id] = view
    return found


def remove_leftovers(project: Project, tables: Iterable[Table]) -> Iterator[tuple[str, int]]:
    """Remove what views have left behind; yield each table and its number of files.

    A view that is not rebuilt yet keeps them, because its change may be taken back.
    """
    lake = layout(project)
    for table_id, view in leftovers(project, tables).items():
        at = head_as_found(lake.uri(view.id))
        if at and at.is_filled and not redefined_parts(project, view):
            yield table_id, remove_table(lake.uri(table_id))
