"""Origins of a source's rows outside the lake: files, a topic, or a Delta table that others write.

Status, plans, `doctor` and Airflow's page ask an origin, so nothing here starts Spark. The rows
are read by feeds, in `files`, `topic` and `table`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from typing import Any

from sluice.declare.declared import FILES, fill_pattern
from sluice.declare.meaning import definition_of_deliveries, meaning_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.intervals import Note, check_kept, deliveries
from sluice.delta.log import CommitActions, CommitRange, commit_ranges
from sluice.delta.log.continuity import check_definition
from sluice.delta.log.opened import Foreign, exists
from sluice.delta.log.position import Head, head, head_as_found
from sluice.delta.note_tables import delete_rows, read_rows
from sluice.delta.places.folders import LandedFile
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading import landing
from sluice.errors import ConfigError, HistoryLost, QualityStop, UsageError
from sluice.language.interval import Interval, spans
from sluice.language.names import ARRIVALS, DELIVERIES, INTERVAL, INTERVALS, QUARANTINE, internal
from sluice.read.pending import Outside, Unread, pending
from sluice.sources import ForeignTable, Source, Topic
from sluice.sources.kafka.client import Brokers
from sluice.sources.kafka.connection import check_registry, client_settings
from sluice.sources.kafka.offsets import OffsetRange
from sluice.sources.kafka.records import moment_of
from sluice.sources.versions import (
    VersionRange,
    check_columns,
    check_files,
    range_of,
    show_versions,
)

ANSWER_S = 5.0  # a person waits for the lag
OFFSETS_SKIPPED = "partition {}: the messages from offset {} to {} are skipped"
CHANGED = (
    "nothing was committed; `changes: skip`, in Spark the option skipChangeCommits, leaves such "
    "commits out; or read the table instead of a stream of it; or `sluice rebuild {} --as-landed` "
    "takes its rows as they are now"
)
VERSIONS_SKIPPED = "the changes of versions {} to {} are skipped"
Files = tuple[LandedFile, ...]
ARRIVED = "_sluice_arrived"  # in a stream's notes of its files: when its batch was read


@dataclass(frozen=True)
class Origin:
    """Origin of a source's rows."""

    project: Project
    table: Table

    @property
    def spec(self) -> Source:
        assert isinstance(self.table.spec, Source)
        return self.table.spec

    @property
    def address(self) -> str:
        return self.project.address(self.spec)

    @property
    def kept_uri(self) -> str:
        """Address of the table that its rows are delivered to."""
        return layout(self.project).uri(self.table.delivered_to)

    @property
    def intervals_uri(self) -> str:
        return layout(self.project).uri(self.table.id, INTERVALS)

    @property
    def quarantine_uri(self) -> str:
        return layout(self.project).uri(self.table.id, QUARANTINE)

    def clear_quarantine(self, since: datetime | None) -> None:
        """Delete what killed batches after that moment left there; what they read is read again."""
        delete_rows(self.quarantine_uri, f"{INTERVAL} > '{since.isoformat()}'" if since else "true")

    def unread(self) -> tuple[Unread, ...]:
        """Return what was not read yet, by partition; nothing of files."""
        return ()

    def outside(self, now: datetime) -> Outside:
        """Return the intervals that the source does not reflect at that time."""
        return Outside()

    def nothing_new(self, interval: Interval | None) -> str | None:
        """Return the reason why there is nothing to ingest; None if there may be something."""
        return None

    def checks(self) -> Iterator[Callable[[], object]]:
        """Yield checks of what the next run needs of it."""
        yield self.unread

    def files_read(self, note: Note) -> tuple[str, ...]:
        """Return the files that a delivery has read, if they are known."""
        return ()

    def has_filled(self, place: Mapping[str, Any]) -> bool:
        """True if rows that were read up to that place may have come from here."""
        return "table" not in place

    @property
    def remedy(self) -> str:
        """Hint for a declaration whose rows came from elsewhere."""
        return "revert the change; or declare the changed source under another name"

    def check_rebuild(self, *, as_landed: bool) -> None:
        """Raise HistoryLost if it can't be read from its beginning."""

    def move(self, before: Head, *, latest: bool) -> tuple[dict[str, Any], list[str]]:
        """Return the place at its end or beginning, and the skipped parts in words."""
        raise NotImplementedError


class FileOrigin(Origin):
    """Files, of intervals or of a stream."""

    def outside(self, now: datetime) -> Outside:
        """Return the intervals that it does not reflect at that time; none of a stream.

        Whether an interval has changed is known only of sources that are read from files.
        """
        project, table = self.project, self.table
        if not self.spec.is_by_interval:
            return Outside()
        noted = deliveries(self.intervals_uri)
        done = [span.interval for span in spans(note.interval for note in noted)]
        complete = project.pipelines[table.pipeline].complete_intervals(now)
        due = tuple(i for i in complete if not any(one.covers(i) for one in done))
        if self.spec.format not in FILES:
            return Outside(due)
        at = head_as_found(self.kept_uri)
        filled_by = at.position.definition if at and at.position else ""  # another is no news
        definitions = {definition_of_deliveries(table), filled_by}
        others = tuple(changed_deliveries(project, table, noted, definitions))
        return Outside(
            due,
            tuple(interval for interval, files in others if files),
            tuple(interval for interval, files in others if not files),
        )

    def nothing_new(self, interval: Interval | None) -> str | None:
        project, table = self.project, self.table
        pipeline = project.pipelines[table.pipeline]
        if not self.spec.is_by_interval:
            return None
        if interval is None:
            return "this run has no data interval, so there is nothing to ingest"
        if self.spec.format not in FILES or self._is_interrupted():
            return None
        known = {note.interval: note for note in deliveries(self.intervals_uri)}
        check_kept(table.id, [*known.values()], head(self.kept_uri))
        asked = pipeline.schedule.intervals(interval.start, interval.end)
        if not known.keys() >= {*asked}:
            return None
        noted, as_now = [known[each] for each in asked], {definition_of_deliveries(table)}
        if any(changed_deliveries(project, table, noted, as_now)):
            return None
        shown = interval.format(pipeline.timezone)
        return f"{table.id} holds {shown} already, and its files are the same"

    def _is_interrupted(self) -> bool:
        """Return whether a recorded delivery may be missing from the table."""
        if not exists(layout(self.project).uri(self.table.id)):
            return True
        return self.spec.keeps_deliveries and bool(pending(self.project, self.table))

    def checks(self) -> Iterator[Callable[[], object]]:
        if self.spec.is_by_interval:
            yield self._check_intervals

    def _check_intervals(self) -> None:
        noted, at = deliveries(self.intervals_uri), head(self.kept_uri)
        check_source(self.project, self.table, at)
        check_kept(self.table.id, noted, at)

    def files_read(self, note: Note) -> tuple[str, ...]:
        if self.spec.delivery == "stream":
            uri = layout(self.project).uri(self.table.id, ARRIVALS)
            rows = read_rows(uri, [(ARRIVED, "=", note.interval.start)])
            return tuple(sorted(LandedFile(file_of(r["path"]), 0, 0).shown for r in rows))
        return tuple(f.shown for f in list_files(self.project, self.table, note.interval)[1])


def file_of(path: str) -> str:
    """Return the file that an arrival's path names; Spark wrote some paths as `file:/x`."""
    return path.removeprefix("file:") if path[5:7] != "//" else path


class TopicOrigin(Origin):
    """A topic of Kafka."""

    @property
    def topic(self) -> Topic:
        assert self.spec.kafka
        return self.spec.kafka

    @property
    def address(self) -> str:
        """Address of the topic at its first broker."""
        settings = client_settings(self.topic, self.table.id)
        return f"kafka://{settings['bootstrap.servers'].split(',')[0]}/{self.topic.topic}"

    def unread(self) -> tuple[Unread, ...]:
        """Return each partition's unread messages, at most, and the oldest one's time.

        Raises HistoryLost if they can't be read from the recorded place on.
        """
        offsets = OffsetRange.of(head(self.kept_uri))
        brokers = replace(Brokers.of(self.table.id, self.topic), answer_s=ANSWER_S)
        found = brokers.describe()
        if offsets:
            offsets.check(found, self.table.id)
        offsets = offsets or OffsetRange.beginning(found, latest=self.topic.start == "latest")
        offsets = offsets.with_new_partitions(found)
        counts = offsets.lag(found)
        times = brokers.times(offsets.following, found.following) if any(counts.values()) else {}
        moments = {p: moment_of(at) for p, at in times.items()}
        return tuple(Unread(p, count, moments.get(p)) for p, count in sorted(counts.items()))

    def checks(self) -> Iterator[Callable[[], object]]:
        yield self.unread
        if self.spec.value and self.spec.value.registry:
            yield partial(check_registry, self.spec.value, self.table.id)

    def has_filled(self, place: Mapping[str, Any]) -> bool:
        return True  # OffsetRange refuses any other place

    def check_rebuild(self, *, as_landed: bool) -> None:
        if not as_landed:
            raise HistoryLost(
                f"{self.table.id}: a topic read again gives only what it still has",
                hint=f"`sluice rebuild {self.table.id} --as-landed` replaces the rows by these",
            )

    def move(self, before: Head, *, latest: bool) -> tuple[dict[str, Any], list[str]]:
        place = OffsetRange.of(before)
        assert place
        there = place.moved_to(Brokers.of(self.table.id, self.topic).describe(), latest=latest)
        skipped = there.gaps[len(place.gaps) :]
        return there.to_dict(), [OFFSETS_SKIPPED.format(*gap) for gap in skipped]


class TableOrigin(Origin):
    """A Delta table that somebody else writes."""

    @property
    def foreign(self) -> ForeignTable:
        assert self.spec.delta
        return self.spec.delta

    @property
    def uri(self) -> str:
        return self.project.resolve(self.foreign.path)

    def open_table(self) -> Foreign:
        return Foreign.at(self.uri, self.table.id)

    def ranges(self, found: Foreign, after: int, *bounds: int) -> Iterator[CommitRange]:
        """Yield the commits after a version, in ranges of so many rows and bytes at most.

        Raises QualityStop if one of them changes rows and `changes` refuses that.
        """
        most = bounds or (self.foreign.max_rows, self.foreign.max_bytes)
        for span in commit_ranges(found.log, after, found.version, *most):
            if self.foreign.changes == "follow":
                yield span
                continue
            commits = [
                CommitActions(v, found.log.actions(v)) for v in range(span.after + 1, span.upto + 1)
            ]
            changing = [commit.version for commit in commits if commit.removes]
            if changing and self.foreign.changes == "refuse":
                raise QualityStop(
                    f"{self.spec.read_at}{self.table.id} reads {self.uri} as a stream, but its "
                    f"version {changing[0]} changes or deletes rows",
                    hint=CHANGED.format(self.table.id),
                )
            parts = (commit.added for commit in commits if not commit.removes)
            yield CommitRange(span.after, span.upto, tuple(p for p in parts if p.files))

    def unread(self) -> tuple[Unread, ...]:
        """Return how many versions were not read yet.

        Raises HistoryLost if they can't be read from the recorded place on, and QualityStop if the
        table lacks a declared column.
        """
        found, name = self.open_table(), self.table.id
        check_columns(found, found.version, self.spec.of_files, name)
        versions = VersionRange.of(head(self.kept_uri), name)
        if versions:
            versions.check(found, name)
            for span in self.ranges(found, versions.upto):
                check_files(found, span, name)
        last = versions.upto if versions else -1
        return (Unread(None, found.version - last, None, "version"),)

    def files_read(self, note: Note) -> tuple[str, ...]:
        """Return the place of the table, and the versions that a delivery has read."""
        read = range_of(note.files)
        return (f"{self.uri}, {show_versions(*read[1:])}",) if read else ()

    def has_filled(self, place: Mapping[str, Any]) -> bool:
        return "table" in place

    @property
    def remedy(self) -> str:
        return f"run `sluice rebuild {self.table.id} --as-landed`: it takes today's rows"

    def move(self, before: Head, *, latest: bool) -> tuple[dict[str, Any], list[str]]:
        if not latest:
            raise UsageError(
                f"{self.table.id} follows a Delta table, whose oldest version is not a start",
                hint=f"`sluice rebuild {self.table.id} --as-landed` reads the table as it is now",
            )
        found, place = self.open_table(), VersionRange.of(before, self.table.id)
        assert place
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
        return there.to_dict(), [VERSIONS_SKIPPED.format(gap[0] + 1, gap[1])]


def origin_of(project: Project, table: Table) -> Origin:
    """Return the origin that a source declares."""
    spec = table.spec
    assert isinstance(spec, Source)
    if spec.kafka:
        return TopicOrigin(project, table)
    return TableOrigin(project, table) if spec.delta else FileOrigin(project, table)


def check_source(project: Project, table: Table, kept: Head | None) -> None:
    """Raise ConfigError if the source or its deliveries were filled by another definition.

    `kept`: the head of the table that rows are delivered to.
    """
    check_definition(table, kept, meaning_of_deliveries(table))
    assert isinstance(table.spec, Source)
    is_apart = kept is None or table.spec.keeps_deliveries
    visible = head(layout(project).uri(table.id)) if is_apart else kept
    if kept is None or table.spec.key:
        check_definition(table, visible)
    origin = origin_of(project, table)
    if _came_another_way(origin, kept, visible):
        raise ConfigError(
            [f"{table.id} has rows that arrived in a different way than the configuration says"],
            hint=origin.remedy,
        )


def _came_another_way(origin: Origin, kept: Head | None, visible: Head | None) -> bool:
    """Return whether the rows are of another kind of origin than the declared one.

    Rows that deliveries are kept of are computed from these; others were delivered into the table.
    """
    now = visible.position if visible and visible.is_filled else None
    kept_name = internal(origin.table.id, DELIVERIES)
    if now and (kept_name in now.inputs) != origin.spec.keeps_deliveries:
        return True
    last = kept.position if kept and kept.is_filled else None
    return last is not None and not origin.has_filled(last.topic)


def list_files(project: Project, table: Table, interval: Interval) -> tuple[str, Files]:
    """Return the path of an interval, and the files that are there now."""
    path = path_of(project, table, interval)
    return path, landing.list_delivered(path, table.id)


def path_of(project: Project, table: Table, interval: Interval) -> str:
    """Return the path at which an interval's files lie."""
    spec, zone = table.spec, project.pipelines[table.pipeline].timezone
    assert isinstance(spec, Source)
    return project.resolve(fill_pattern(spec.path, interval, zone))


def changed_deliveries(
    project: Project, table: Table, noted: Iterable[Note], definitions: Collection[str]
) -> Iterator[tuple[Interval, Files]]:
    """Yield each delivered interval whose files are others now, with these files.

    `definitions`: what may have been made of the files, if they are to count as the same.
    """
    listed = cache(partial(landing.list_delivered, reader=table.id))
    for note in noted:
        files = listed(path_of(project, table, note.interval))
        if note.files not in {landing.fingerprint(files, made) for made in definitions}:
            yield note.interval, files
