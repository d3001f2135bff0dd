"""Place of a source that is to continue at the newest version of its table."""

from dataclasses import replace
from typing import Any

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import Head
from sluice.errors import UsageError
from sluice.sources.foreign.table_source import TableSource
from sluice.sources.foreign.versions import VersionRange

GAP = "the changes of versions {} to {} are skipped"


def moved(
    project: Project, table: Table, before: Head, *, latest: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return the place at the newest version, and the skipped part as text."""
    if not latest:
        raise UsageError(
            f"{table.id} follows a Delta table, whose oldest version is not a start",
            hint=f"`sluice rebuild {table.id} --as-landed` reads the table as it is now",
        )
    source, place = TableSource.of(project, table), VersionRange.of(before, table.id)
    assert place
    found = source.found()
    is_same = place.table_id == found.table_id and place.upto <= found.version
    gap = (place.upto if is_same else -1, found.version)
    there = replace(
        place,
        table_id=found.table_id,
        after=found.version,
        upto=found.version,
        commit=found.fingerprint(found.version),
        gaps=(*place.gaps, gap),
    )
    return there.plain(), [GAP.format(gap[0] + 1, gap[1])]
