"""Tables in a lake, whether or not a declaration names them. Reads only listings.

An earlier, longer query of a view may have left tables behind. They were internal tables of the
view, such as `<view>__3` or `<view>__state`. Nothing reads them.
"""

import re
from collections.abc import Iterable, Iterator

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.places.delta_rs import folder_names, is_table
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.language.internal import FORGOTTEN, MARK, STATE, declared, internal

HIDDEN = ("_", ".")  # a folder with this prefix is not a pipeline
PART = re.compile(rf"(.+?){MARK}(?:{STATE}|\d+(?:{MARK}.*)?)")
LEFT_BEHIND = "an earlier query of {} created it, and nothing reads it any more"
REPAIR = "`sluice maintain {}` removes it"


def undeclared(project: Project) -> list[str]:
    """Return the tables in the project's lake that none of its declarations names, by id."""
    return sorted(names_in(layout(project)) - project.graph.tables.keys())


def names_in(lake: LakeLayout) -> set[str]:
    """Return the lake's tables, by id, without those that have only notes of forgotten subjects.

    Dropping a table leaves these notes.
    """
    notes = internal("", FORGOTTEN)
    return {declared(table_id) for table_id in stored(lake) if not table_id.endswith(notes)}


def leftovers(project: Project, tables: Iterable[Table]) -> dict[str, Table]:
    """Return the tables that these views no longer use, by id."""
    views = {table.id: table for table in tables if table.is_view}
    if not views:
        return {}
    found: dict[str, Table] = {}
    for table_id in sorted(stored(layout(project))):
        part = PART.fullmatch(table_id)
        view = views.get(part[1]) if part else None
        if view and table_id not in made_of(view):
            found[table_id] = view
    return found


def made_of(view: Table) -> dict[str, Table]:
    """Return the stored tables that keep a view, states first, each with the part that it keeps."""
    found: dict[str, Table] = {}
    for part in view.parts or (view,):
        if part.spec.HAS_STATE:
            found[internal(part.id, STATE)] = part
        found[part.id] = part
    return found


def stored(lake: LakeLayout) -> Iterator[str]:
    """Yield every Delta table of the lake, internal ones too, as `pipeline.table`."""
    for pipeline in _folders(lake.root):
        for table in _folders(f"{lake.root}/{pipeline}"):
            if is_table(f"{lake.root}/{pipeline}/{table}"):
                yield f"{pipeline}.{table}"


def folders_of(lake: LakeLayout, table_id: str) -> list[str]:
    """Return the names of the folders of a table and of its internal tables."""
    pipeline, _, table = lake.uri(table_id).rpartition("/")
    return [name for name in _folders(pipeline) if declared(name) == table]


def _folders(uri: str) -> list[str]:
    return [name for name in folder_names(uri) if not name.startswith(HIDDEN)]
