"""Distinguish a lost race from every other fault of a commit.

These errors were observed. delta-rs, committing onto exactly one version, raises CommitFailedError,
or a plain DeltaError if a table was created meanwhile. Spark raises one of Delta's concurrency
errors: ConcurrentTransaction if the other commit carries the same application's number. Otherwise
it raises ConcurrentAppend, ConcurrentDeleteRead, MetadataChanged and so on. Their codes appear in
the message, also through Spark Connect. In S3, Spark may also raise S3A's own error for a file that
another writer created meanwhile, which Delta passes on.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from deltalake.exceptions import CommitFailedError, DeltaError

from sluice.delta.log.opened import exists, opened
from sluice.errors import LostRace

_SPARK = re.compile(
    r"\[DELTA_(CONCURRENT_[A-Z_]+|METADATA_CHANGED|PROTOCOL_CHANGED)|s3a\.RemoteFileChangedException"
)
_CREATED = "already exists"
T = TypeVar("T")


@contextmanager
def lost_race_of(uri: str, version: int) -> Iterator[None]:
    """Raise LostRace in place of a committer's error if `uri` has moved on from `version`.

    A missing table has the version -1.
    """
    try:
        yield
    except Exception as error:
        if _is_conflict(error) and _version(uri) > version:
            raise lost(uri, version) from error
        raise


def repeated(work: Callable[[], T], attempts: int) -> T:
    """Return what `work` returns; it starts again if another writer was first.

    Raises LostRace if that was so each time.
    """
    for _ in range(attempts - 1):
        with suppress(LostRace):
            return work()
    return work()


def _is_conflict(error: Exception) -> bool:
    if isinstance(error, CommitFailedError):
        return True
    if isinstance(error, DeltaError):
        return _CREATED in str(error)
    return bool(_SPARK.search(str(error)))


def _version(uri: str) -> int:
    return opened(uri).version() if exists(uri) else -1


def lost(uri: str, version: int) -> LostRace:
    """Return the error for a writer that was not first."""
    return LostRace(
        f"another writer committed to {uri} after version {version}: this attempt was discarded",
        hint="nothing is lost; the next attempt starts from the new head",
    )
