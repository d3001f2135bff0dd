"""Deliveries that brought rows of a source: their interval, their commit, their files.

The notes name the delivery that is now valid. Where the interval has been delivered again since the
version in question, its commit is not named.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from sluice.declare.project import Project
from sluice.delta.notes.intervals import deliveries
from sluice.delta.places.lake_layout import layout
from sluice.language.hidden_columns import INTERVAL
from sluice.language.internal import INTERVALS, declared
from sluice.language.interval import Interval
from sluice.operate.delivering import delivering
from sluice.operate.lineage.walk import TracedRows
from sluice.read.stored.commits import Commit, back_from


@dataclass(frozen=True)
class Delivered:
    """One interval of a source, and how many of the rows in question it brought.

    `files`: those of the interval that are there now; of a topic or a stream, none are named.
    """

    source: str
    interval: Interval
    rows: int
    commit: Commit | None
    files: tuple[str, ...]


def delivered(project: Project, part: TracedRows) -> list[Delivered]:
    """Return the deliveries of a part's rows, in order; none unless they are a source's own."""
    table = project.graph.tables[declared(part.table)]
    if not table.is_ingested or part.version is None or INTERVAL not in part.rows.column_names:
        return []
    uri = layout(project).uri
    times = Counter[datetime](part.rows[INTERVAL].to_pylist())
    commits = {c.position.batch: c for c in back_from(uri(part.table), part.version) if c.position}
    found = []
    for note in deliveries(uri(table.id, INTERVALS)):
        within = note.interval
        if rows := sum(n for time, n in times.items() if within.start <= time < within.end):
            files = delivering(table).files_read(project, table, note)
            found.append(Delivered(table.id, within, rows, commits.get(note.batch), files))
    return found
