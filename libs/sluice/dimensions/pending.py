"""News of a dimension: files that differ from those of its last load."""

from sluice.declare.declared import FILES
from sluice.declare.meaning.definition import definition_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.notes import intervals
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading import landing
from sluice.dimensions.loaded import note
from sluice.dimensions.spec import Dimension
from sluice.language.internal import INTERVALS
from sluice.language.interval import Interval


def nothing_new(
    project: Project,
    table: Table,
    interval: Interval | None,  # noqa: ARG001
) -> str | None:
    """Return the reason why there is nothing to load; None if there may be something."""
    spec = table.spec
    assert isinstance(spec, Dimension)
    lake = layout(project)
    if spec.format not in FILES or not exists(lake.uri(table.id)):
        return None
    files = landing.delivered(project.resolve(spec.path), table.id)
    noted = note(spec, files, definition_of_deliveries(table))
    known = intervals.deliveries(lake.uri(table.id, INTERVALS))
    intervals.check_kept(table.id, known, head(lake.uri(table.id)))
    if any(d.files == noted for d in known):
        return f"{table.id} is loaded, and its files are the same"
    return None
