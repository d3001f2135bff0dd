"""Lag of a source behind the table that it follows."""

from collections.abc import Collection

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.commit_range import commit_ranges
from sluice.delta.log.foreign_table import Foreign
from sluice.delta.log.position import head
from sluice.delta.places.lake_layout import layout
from sluice.language.internal import DELIVERIES
from sluice.read.pending import Unread
from sluice.sources.followed_table import ForeignTable
from sluice.sources.foreign.versions import VersionRange, check_columns, check_files

VERSION = "version"


def unread_of(
    project: Project, table: Table, names: Collection[str], foreign: ForeignTable
) -> tuple[Unread, ...]:
    """Return how many versions were not read yet. `names`: the columns that it must have.

    Raises HistoryLost if they can't be read from the recorded place on, and QualityStop if the
    table lacks a column.
    """
    found = Foreign.at(project.resolve(foreign.path), table.id)
    check_columns(found, found.version, names, table.id)
    versions = VersionRange.of(head(layout(project).uri(table.id, DELIVERIES)), table.id)
    if versions:
        versions.check(found, table.id)
        bounds = foreign.max_rows, foreign.max_bytes
        for span in commit_ranges(found.log, versions.upto, found.version, *bounds):
            check_files(found, span, table.id)
    return (Unread(None, found.version - (versions.upto if versions else -1), None, VERSION),)
