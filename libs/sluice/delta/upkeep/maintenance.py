"""Upkeep of a table's files: merge many small ones, sort rows for reads, delete what is not needed.

No row changes. Upkeep commits repeat the table's position, so the next batch begins where it would
have begun. Their files are marked as unchanged data, so the feed does not show them. If a batch
commits in between, either the upkeep waits for the next time, or both are committed and the batch's
position is valid.

A file that a commit removed is needed by snapshots before that commit, and by the feed across it.
So only files removed before the oldest version that a consumer still names may be deleted. The time
of that version is the earliest among its commit and all later ones, because a clock may have been
set back. An extra day allows for different clocks and running batches.

Consumers read feeds from recorded versions, whose commits prove that a table is still the same. So
the log keeps a checkpoint at or before the oldest named version, and every commit from there on.
Older versions can no longer be opened.
"""

import math
import re
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyarrow.fs import FileSelector
from pyspark.sql import DataFrame, SparkSession

from sluice.changes import Direction
from sluice.delta.log import Log
from sluice.delta.log.files import added_files, file_name, has_vectors, vector_file
from sluice.delta.log.opened import open_version
from sluice.delta.log.position import Head, Position
from sluice.delta.places.delta_rs import files_below, open_table
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import LOG
from sluice.delta.writing.filing import Slice, arrange_in_files, files_for, slices_of
from sluice.delta.writing.merge import SparkCommit
from sluice.delta.writing.own_commits import unfenced_properties, writer_properties
from sluice.errors import LostRace
from sluice.limits import Limits

UPKEEP_RUN = ""  # upkeep belongs to no run


@dataclass(frozen=True)
class Filing:
    """A table at its head, the order of its rows, and the column of its slices."""

    before: Head
    limits: Limits
    order: Sequence[Direction] = ()
    partition: str | None = None

    @property
    def slices(self) -> list[Slice]:
        """Slices of the table, the oldest first."""
        return slices_of(open_version(self.before.uri, self.before.version))

    def refile(self, session: SparkSession, slices: Sequence[Slice], kind: str) -> int:
        """Rewrite these slices in order, with Spark; return their number of files."""
        numbers = ", ".join(str(s.number) for s in slices)
        where = f"`{self.partition}` IN ({numbers})" if self.partition else None
        files = files_for(sum(s.row_count for s in slices), self.limits)
        partitions = [self.partition] if self.partition else []

        def in_order(rows: DataFrame) -> DataFrame:
            return arrange_in_files(rows, self.order, partitions, files)

        try:
            position = upkeep(self.before, kind)
            by_spark = SparkCommit(session, self.before, position, limits=self.limits)
            by_spark.rewrite(in_order, where)
        except LostRace:
            return 0
        return sum(len(s.paths) for s in slices)

    def compact(self, slices: Sequence[Slice], kind: str) -> int:
        """Merge the files of these slices unsorted, without Spark; return their number."""
        table = open_table(self.before.uri, version=self.before.version)
        chosen = [(self.partition, "in", [str(s.number) for s in slices])] if self.partition else []
        position = upkeep(self.before, kind)
        passing("committing", self.before.uri)
        try:
            done = table.optimize.compact(
                partition_filters=chosen or None,
                writer_properties=writer_properties(pa.schema(table.schema().to_arrow())),
                commit_properties=unfenced_properties(position),
            )
        except DeltaError:
            return 0
        passing("committed", self.before.uri)
        return int(done["numFilesRemoved"])


def upkeep(before: Head, kind: str) -> Position:
    """Return the table's position for an upkeep commit, which changes no row."""
    assert before.position is not None, "only tables with a position are maintained"
    mine = replace(before.position, kind=kind, attempt=uuid.uuid4().hex, run=UPKEEP_RUN)
    return replace(mine, after=before.version).without_change(before.data_version)


LEAST = timedelta(days=7)  # for iterators and time travel
SPARE = timedelta(days=1)
HOUR = timedelta(hours=1)


def vacuum(before: Head, oldest: int, now: datetime, least: timedelta = LEAST) -> int:
    """Delete files and return how many. `oldest`: the oldest version that a consumer names.

    Nothing is deleted if the log no longer has the time of that version or a later one. In a table
    with vectors, delta-rs also lists files that it should keep. It treats files with rows marked
    long ago as removed then, and lists other writers' separate files of vectors.
    """
    every = range(oldest, max(oldest, before.version) + 1)
    made = [committed_at(before.uri, version) for version in every]
    known = [at for at in made if at is not None]
    if len(known) < len(made):
        return 0
    lag = now - min(known) + SPARE if oldest < before.version else least
    keep = math.ceil(max(least, lag) / HOUR)
    table = open_table(before.uri, version=before.version)
    listed = table.vacuum(keep, dry_run=True, enforce_retention_duration=False, full=True)
    if not listed:
        return 0
    if has_vectors(table):
        named = _names_of_files(before, oldest, now - keep * HOUR)
        gone = {p for p in listed if file_name(p) not in named} if named is not None else ()
        return _delete(before.uri, gone)
    passing("committing", before.uri)
    try:
        done = table.vacuum(
            keep,
            dry_run=False,
            enforce_retention_duration=False,
            full=True,
            commit_properties=unfenced_properties(upkeep(before, "vacuum")),
        )
    except DeltaError:
        return 0
    passing("committed", before.uri)
    return len(done)


def _delete(uri: str, paths: Collection[str]) -> int:
    files = files_below(uri)
    for path in paths:
        passing("deleting", uri)
        with suppress(FileNotFoundError):
            files.delete_file(path)
    return len(paths)


def _names_of_files(before: Head, oldest: int, since: datetime) -> set[str] | None:
    """Return the names of the files of versions; None if the log can't be replayed here.

    These are the versions from `oldest` on, and all that were the head after `since`.
    """
    version, at = before.version, committed_at(before.uri, before.version)
    while at and (version > oldest or at > since):
        if at := committed_at(before.uri, version - 1):
            version -= 1
    if (files := added_files(before.uri, version)) is None:
        return None
    log, later = Log(before.uri), range(version + 1, before.version + 1)
    came = [a["add"] for v in later for a in log.actions(v) if "add" in a]
    every = (*files.values(), *came)
    vectors = (path for file in every if (path := vector_file(file)))
    return {file_name(path) for path in (*(file["path"] for file in every), *vectors)}


def committed_at(uri: str, version: int) -> datetime | None:
    """Return the time of a version by its writer's clock; None if the log was cleaned."""
    try:
        actions = Log(uri).actions(version)
    except FileNotFoundError:
        return None
    times = [a["commitInfo"]["timestamp"] for a in actions if "commitInfo" in a]
    return datetime.fromtimestamp(times[0] / 1000, UTC) if times else None


LEAST_LOGGED = timedelta(days=30)  # for time travel and for inspecting past batches
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
NUMBERED = re.compile(r"(\d{20})\..+")  # commits, checkpoints, and what other writers add to them


def clean_log(uri: str, oldest: int, now: datetime, least: timedelta = LEAST_LOGGED) -> int:
    """Delete the log before a checkpoint; return the number of deleted files.

    `oldest`: the oldest version that a consumer names. Nothing is deleted if the checkpoint can't
    be read. Deletion begins with the oldest file, so a kill only leaves a shorter log.
    """
    files = files_below(uri)
    found = files.get_file_info(FileSelector(LOG, allow_not_found=True))
    names = sorted(info.base_name for info in found if NUMBERED.fullmatch(info.base_name))
    made = [int(match[1]) for name in names if (match := CHECKPOINT.fullmatch(name))]
    times = ((v, committed_at(uri, v)) for v in reversed(made) if v <= oldest)
    first = next((v for v, at in times if at is not None and at <= now - least), None)
    gone = [name for name in names if first is not None and int(name[:20]) < first]
    if first is None or not gone or not _opens(uri, first):
        return 0
    for name in gone:
        files.delete_file(f"{LOG}/{name}")
        passing("cleaning", uri)
    return len(gone)


def _opens(uri: str, version: int) -> bool:
    """True if the checkpoint of a version can be read, without any commit before it."""
    try:
        open_table(uri, version).get_add_actions()
    except DeltaError:
        return False
    return True
