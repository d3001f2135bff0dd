"""Rows of Delta tables for a batch: a snapshot or a change feed, at exactly one version.

A pinned version always bounds both. So all tasks of a batch see the same rows, whatever is
committed meanwhile. Small ones are read in this process.
"""

import sys
from collections.abc import Sequence

from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession

from sluice.declare.stores import takes_spark
from sluice.delta.log import Log
from sluice.delta.log.files import active_files, feed_size, table_size
from sluice.delta.log.opened import open_version
from sluice.delta.reading.local import local_feed, local_snapshot, narrowed_snapshot
from sluice.errors import ColumnsChanged, FeedVacuumed, LogCleaned, TableAltered, UsageError
from sluice.interpreter import is_here
from sluice.limits import Limits

DISK = "keep tables of this size in a lake on a disk"


def snapshot(
    session: SparkSession, uri: str, version: int, limits: Limits, columns: Sequence[str] = ()
) -> DataFrame:
    """Return the rows of the table as of `version`, at least with these columns; none means all."""
    size = table_size(uri, version).bytes
    if size <= limits.read_here_bytes:
        return local_snapshot(session, uri, version)
    if is_here(session) and size <= limits.computed_here_bytes:
        return narrowed_snapshot(session, uri, version, columns)
    if not is_here(session) and not takes_spark(uri):
        check_handed(uri, size, limits, DISK)
        return local_snapshot(session, uri, version)
    return session.read.format("delta").option("versionAsOf", version).load(uri)


def feed(session: SparkSession, uri: str, after: int, upto: int, limits: Limits) -> DataFrame:
    """Return the change feed of versions (after, upto], with Delta's own columns."""
    if after >= upto:
        raise ValueError(f"an empty range of versions: ({after}, {upto}]")
    most = limits.computed_here_bytes if is_here(session) else limits.read_here_bytes
    size = feed_size(uri, after, upto).bytes
    if size <= most:
        held = limits.held_bytes if is_here(session) else sys.maxsize
        return local_feed(session, uri, after, upto, held)
    if not is_here(session) and not takes_spark(uri):
        check_handed(uri, size, limits, DISK)
        return local_feed(session, uri, after, upto)
    reader = session.read.format("delta").option("readChangeFeed", "true")
    return reader.option("startingVersion", after + 1).option("endingVersion", upto).load(uri)


def check_handed(what: str, size: int, limits: Limits, hint: str) -> None:
    """Raise UsageError, with a hint of what to do, if this process can't read so much for Spark."""
    if size > limits.computed_here_bytes:
        raise UsageError(
            f"{what}: Spark has no access to this store, and {size:,} bytes are more than Sluice "
            f"reads for it ({limits.computed_here_bytes:,})",
            hint=f"nothing was committed; {hint}",
        )


def check_feed(uri: str, name: str, reader: str, after: int, upto: int) -> None:
    """Raise HistoryLost unless every commit of (after, upto] and its change data still exist.

    Cost: a look at each commit, and at each file that the feed would open anyway.
    """
    log = Log(uri)
    if gone := log.missing_commits(range(after + 1, upto + 1)):
        raise LogCleaned(
            f"{reader!r} last read {name!r} at version {after}, but its log starts at "
            f"{max(gone) + 1}",
            hint=f"run `sluice rebuild {reader}`; keep logs longer than the slowest consumer's lag",
        )
    for version in range(after + 1, upto + 1):
        is_altered = log.changes_schema(version)
        if is_altered and not is_wider(uri, after, upto):
            raise ColumnsChanged(
                f"{reader!r} last read {name!r} at version {after}, but version {version} removed "
                f"columns or changed their types, or can't be compared any more",
                hint=f"run `sluice rebuild {reader}`",
            )
        if is_altered and log.ends_feed(version):
            raise TableAltered(
                f"{reader!r} last read {name!r} at version {after}, but its change feed was "
                f"switched off at version {version}",
                hint=f"run `sluice rebuild {reader}`, once it is on again",
            )
        if deleted := log.missing_files(version):
            raise FeedVacuumed(
                f"{reader!r} last read {name!r} at version {after}, but version {version} can't be "
                f"read any more: {len(deleted)} of its files were deleted ({deleted[0]})",
                hint=f"run `sluice rebuild {reader}`; don't vacuum files that a consumer still "
                f"has to read",
            )


def is_readable(uri: str, version: int) -> bool:
    """True if the rows of a version can be read: its log and its files still exist.

    Cost: a look at each of its files that the table has removed since.
    """
    try:
        files, kept = (
            active_files(open_version(uri, v))["path"].to_pylist() for v in (version, None)
        )
    except DeltaError:
        return False
    return Log(uri).has_files({*files} - {*kept})


def is_wider(uri: str, after: int, upto: int) -> bool:
    """True if a version surely has all columns of an earlier one, in the same types.

    False if the log was cleaned and the earlier one can't be opened any more.
    """
    try:
        old, new = (open_version(uri, version).schema().fields for version in (after, upto))
    except DeltaError:
        return False
    return {(f.name, f.type.to_json()) for f in old} <= {(f.name, f.type.to_json()) for f in new}
