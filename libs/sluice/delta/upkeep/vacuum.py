"""Delete files that no reader needs any more: behind every consumer, and at least a week old.

A file that a commit removed is needed by snapshots before that commit, and by the feed across it.
So only files removed before the oldest version that a consumer still names may be deleted. That
time is the earliest by the clocks of that version's commit and of later ones, because one clock may
have been set back. A spare day covers clocks that differ and batches that run.
"""

import math
from datetime import UTC, datetime, timedelta

from deltalake.exceptions import DeltaError

from sluice.delta.log.actions import Log
from sluice.delta.log.added import added
from sluice.delta.log.position import Head
from sluice.delta.log.vectors import INLINE, has_vectors
from sluice.delta.places.failpoint import passing
from sluice.delta.places.stores import open_table
from sluice.delta.upkeep.maintenance import unfenced, upkeep

LEAST = timedelta(days=7)  # for iterators and time travel
SPARE = timedelta(days=1)
HOUR = timedelta(hours=1)


def vacuum(before: Head, oldest: int, now: datetime, least: timedelta = LEAST) -> int:
    """Delete files and return how many. `oldest`: the oldest version that a consumer names.

    Nothing is deleted if the log no longer dates that version, or one after it, or if another
    writer has put deletion vectors into files of their own, which delta-rs takes for remains.
    """
    every = range(oldest, max(oldest, before.version) + 1)
    made = [committed_at(before.uri, version) for version in every]
    known = [at for at in made if at is not None]
    if len(known) < len(made):
        return 0
    lag = now - min(known) + SPARE if oldest < before.version else least
    keep = math.ceil(max(least, lag) / HOUR)
    table = open_table(before.uri, version=before.version)
    if has_vectors(table) and _may_lose_vectors(before):
        return 0
    if not table.vacuum(keep, dry_run=True, enforce_retention_duration=False, full=True):
        return 0
    passing("committing", before.uri)
    try:
        gone = table.vacuum(
            keep,
            dry_run=False,
            enforce_retention_duration=False,
            full=True,
            commit_properties=unfenced(upkeep(before, "vacuum")),
        )
    except DeltaError:
        return 0
    passing("committed", before.uri)
    return len(gone)


def _may_lose_vectors(before: Head) -> bool:
    files = added(before.uri, before.version)
    if files is None:
        return True
    vectors = (file["deletionVector"] for file in files.values() if "deletionVector" in file)
    return any(vector["storageType"] != INLINE for vector in vectors)


def committed_at(uri: str, version: int) -> datetime | None:
    """Return when a version was made, by its writer's clock; None if the log was cleaned."""
    try:
        actions = Log(uri).actions(version)
    except FileNotFoundError:
        return None
    times = [a["commitInfo"]["timestamp"] for a in actions if "commitInfo" in a]
    return datetime.fromtimestamp(times[0] / 1000, UTC) if times else None
