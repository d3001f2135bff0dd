"""The fence of a commit: it is made once, onto the version that it was computed from, or not at
all.

Every commit of a batch carries the number of the batch and the identity of its attempt. Afterwards
the log shows whose attempt has won. It also shows the outcome of a commit whose answer the store
has lost.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from deltalake import CommitProperties, Transaction

from sluice.delta.log.lost_race import lost, lost_race_of
from sluice.delta.log.opened import opened
from sluice.delta.log.position import Head, Position, positions
from sluice.delta.places.exclusive import check_exclusive
from sluice.delta.places.failpoint import passing
from sluice.delta.places.landed_files import local_path
from sluice.errors import LostRace, Retryable, SluiceError


@dataclass(frozen=True)
class Committed:
    """Result of a commit; `version` is the table's head after it."""

    version: int
    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def changed(self) -> int:
        """Rows in the changelog."""
        return self.inserted + self.updated + self.deleted


def result_of(before: Head, counts: Mapping[str, int]) -> Committed:
    """Return the result of a commit with these numbers of changes."""
    return Committed(
        before.version + 1, *(counts.get(change, 0) for change in ("insert", "update", "delete"))
    )


def properties(before: Head, position: Position) -> CommitProperties:
    """Return the commit properties for delta-rs, which tries only once."""
    return CommitProperties(
        custom_metadata={"userMetadata": position.to_json()},
        max_commit_retries=0,
        app_transactions=[Transaction(before.table, position.batch)],
    )


@contextmanager
def fenced(before: Head, position: Position) -> Iterator[Position]:
    """Yield the position to commit; raise LostRace if the table has moved on."""
    check_exclusive(before.uri)
    passing("committing", before.uri)
    try:
        with lost_race_of(before.uri, before.version):
            renames = before.position.renames if before.position else ()
            yield replace(position, after=before.version, renames=position.renames or renames)
    except SluiceError as error:
        if not isinstance(error, LostRace) or local_path(before.uri):
            raise
        if not _has_landed(before, position, error):
            raise
    except Exception as error:
        if local_path(before.uri) or not _has_landed(before, position, error):
            raise
    passing("committed", before.uri)


def won(before: Head, position: Position, done: Committed) -> Committed:
    """Return `done` at the version whose commit names this attempt; LostRace if there is none."""
    version = _version_of(before, position)
    if version is None:
        raise lost(before.uri, before.version)
    return replace(done, version=version)


def _version_of(before: Head, position: Position) -> int | None:
    """Return the version whose commit names this attempt; None if there is none."""
    newer = opened(before.uri).version() - before.version
    found = positions(before.uri, newer) if newer > 0 else ()
    return next((v for v, one in found if one.attempt == position.attempt), None)


def _has_landed(before: Head, position: Position, error: Exception) -> bool:
    """True if a commit landed although it failed with this error, as when its answer was lost."""
    try:
        return _version_of(before, position) is not None
    except OSError:
        raise Retryable(
            f"{before.uri}: the store failed during a commit, whose outcome is unknown",
            hint="the next run reads the outcome from the log, and continues from there",
        ) from error
