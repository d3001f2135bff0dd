"""News of a dimension: files that differ from those of its last load."""

from sluice.declare.declared import FILES
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.dimensions.source import find
from sluice.dimensions.spec import Dimension
from sluice.language.interval import Interval


def nothing_new(
    project: Project,
    table: Table,
    interval: Interval | None,  # noqa: ARG001
) -> str | None:
    """Return the reason why there is nothing to load; None if there may be something."""
    spec = table.spec
    assert isinstance(spec, Dimension)
    if spec.format not in FILES:
        return None
    found = find(project, table)
    is_same = found.is_loaded(head(found.uri))
    return f"{table.id} is loaded, and its files are the same" if is_same else None
