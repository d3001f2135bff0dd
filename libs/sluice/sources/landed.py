"""Landing folder of a source: the path of an interval, its files, and deliveries that changed."""

from collections.abc import Collection, Iterable, Iterator
from functools import cache, partial

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.notes.intervals import Note
from sluice.delta.places.landed_files import LandedFile
from sluice.delta.reading import landing
from sluice.language import path_pattern
from sluice.language.interval import Interval
from sluice.sources.spec import Source

Files = tuple[LandedFile, ...]


def landed(project: Project, table: Table, interval: Interval) -> tuple[str, Files]:
    """Return the path of an interval, and the files that are there now."""
    path = path_of(project, table, interval)
    return path, landing.delivered(path, table.id)


def path_of(project: Project, table: Table, interval: Interval) -> str:
    """Return the path at which an interval's files lie."""
    spec, zone = table.spec, project.pipelines[table.pipeline].timezone
    assert isinstance(spec, Source)
    return project.resolve(path_pattern.path_of(spec.path, interval, zone))


def changed(
    project: Project, table: Table, noted: Iterable[Note], definitions: Collection[str]
) -> Iterator[tuple[Interval, Files]]:
    """Yield each delivered interval whose files are others now, with these files.

    `definitions`: what may have been made of the files, if they are to count as the same.
    """
    listed = cache(partial(landing.delivered, reader=table.id))
    for note in noted:
        files = listed(path_of(project, table, note.interval))
        if note.files not in {landing.fingerprint(files, made) for made in definitions}:
            yield note.interval, files
