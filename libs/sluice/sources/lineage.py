"""Deliveries of a source's row: its key's last, or all with an equal row; their files."""

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.notes.intervals import Note
from sluice.engine.query.lineage import Groups
from sluice.engine.query.operator import InputRows, Operator
from sluice.sources.foreign.versions import range_of, shown
from sluice.sources.landed import landed
from sluice.sources.operator import LatestOfKey
from sluice.sources.spec import Source


def contributing(operator: Operator, groups: Groups) -> InputRows:
    """Return the delivered row that is valid for each key, or all of a counted row."""
    if not isinstance(operator, LatestOfKey):
        return groups.prepared
    return {name: operator.latest(found) for name, found in groups.prepared.items()}


def files_read(project: Project, table: Table, note: Note) -> tuple[str, ...]:
    """Return the files that a delivery has read; of another's table, its place and versions."""
    spec = table.spec
    assert isinstance(spec, Source)
    if spec.delta and (read := range_of(note.files)):
        return (f"{project.resolve(spec.delta.path)}, {shown(*read[1:])}",)
    if spec.delivery == "stream":
        return ()
    return tuple(file.shown for file in landed(project, table, note.interval)[1])
