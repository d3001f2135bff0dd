"""The steps that remove subjects' rows from a lake, in order. Each is safe to repeat."""

import json
import uuid
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial, reduce
from operator import getitem
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluice.changes import CHANGE
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta import failures, intervals
from sluice.delta.log.continuity import repeat_after_races
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.note_tables import change_rows, read_table
from sluice.delta.places.folders import remove
from sluice.delta.places.lake_layout import folders_of, layout
from sluice.delta.upkeep.erasure import erase_past
from sluice.delta.upkeep.rewriting import unmark
from sluice.delta.upkeep.table_invariants import rows_by
from sluice.delta.writing.commit import commit_arrow, commit_position
from sluice.delta.writing.own_commits import Committed
from sluice.engine import BatchReport
from sluice.engine.advance import Run, advance
from sluice.errors import Retryable, UsageError
from sluice.gate import history
from sluice.language.names import DROPPED, INTERVAL, INTERVALS, QUARANTINE, REBUILT, internal
from sluice.operate.delivering import delivering
from sluice.operate.maintain import kept_in
from sluice.operate.rebuild import rebuild
from sluice.operate.subjects import Sought, rows_of_any
from sluice.operate.tables import dropped_from, looks_up
from sluice.report.publish import publish, report_folder
from sluice.report.quality_pages import FOLDER as REPORT
from sluice.spark.session import Spark


@dataclass(frozen=True)
class Holder:
    """A table that holds delivered rows, and the columns that distinguish these."""

    id: str
    key: tuple[str, ...]


def delivered_in(table: Table) -> tuple[Holder, ...]:
    """Return the tables that hold a table's delivered rows; the last one holds the current ones.

    Raises UsageError for a table whose rows can't be forgotten.
    """
    if not table.is_delivered:
        raise UsageError(
            f"{table.id} is of kind {table.declared_kind}; only rows of a source or a dimension "
            "are forgotten",
            hint="a view follows the tables that it is made from: forget the row there",
        )
    keys = {internal(table.id, name): key for name, key in table.spec.delivered_beside.items()}
    keys[table.delivered_to] = keys.get(table.delivered_to, table.key)
    return tuple(Holder(*held) for held in keys.items())


TEXT = "raw"
MESSAGE = {"topic", "partition", "offset", "key", "value"}
ENCODED = ("key", "value")


def without(uri: str, sought: Sought) -> int:
    """Delete the quarantined rows of subjects from the table at `uri`; return how many."""
    if not exists(uri):
        return 0
    rows, gone = read_table(uri), 0

    def keep_others(rows: pa.Table) -> pa.Table:
        return rows.filter(pc.invert(_theirs(rows, sought)))

    for start in pc.unique(rows.filter(_theirs(rows, sought))[INTERVAL]).to_pylist():
        before, after = change_rows(uri, keep_others, [(INTERVAL, "=", start)])
        gone += before - after
    return gone


def _theirs(rows: pa.Table, sought: Sought) -> pa.BooleanArray:
    return pa.array([_is_theirs(text, sought) for text in rows[TEXT].to_pylist()], pa.bool_())


def _is_theirs(text: str | None, sought: Sought) -> bool:
    message = _row(text) if sought.in_messages else None
    if isinstance(message, dict) and message.keys() >= MESSAGE:
        return any(_has_them(_decode(message[part]), sought) for part in ENCODED)
    return _has_them(text, sought)


def _row(text: str | None) -> Any:
    """Return what a text says as JSON; None if it is none."""
    try:
        return json.loads(text or "null")
    except ValueError:
        return None


def _has_them(text: str | None, sought: Sought) -> bool:
    if text is None:
        return False
    row = _row(text)
    if row is None:
        return sought.is_word(text)
    names = sought.subjects.column_names
    if isinstance(row, dict) and not {name.split(".")[0] for name in names} <= row.keys():
        row |= {name: row[theirs] for name, theirs in sought.in_files.items() if theirs in row}
    try:
        values = [reduce(getitem, name.split("."), row) for name in names]
    except (KeyError, TypeError):  # another's object, or none
        return sought.is_in(text)
    return tuple(v if isinstance(v, str) else json.dumps(v) for v in values) in sought.texts


def _decode(value: str | None) -> str | None:
    try:
        return None if value is None else b64decode(value).decode(errors="replace")
    except Error:
        return value


KIND = "forget"
ATTEMPTS = 50  # of a step beside runs; what was written before a lost race stays


@dataclass(frozen=True)
class Done:
    """One line of a receipt: `what` was done at a place, the count, the commit and the time."""

    place: str
    what: str
    count: int | None
    version: int | None
    at: str

    def to_dict(self) -> dict[str, Any]:
        """Return the line for its note."""
        return asdict(self)


@dataclass(frozen=True)
class Forgetting:
    """Erasure of subjects from a table. `tables`: the table and its consumers, in order."""

    spark: Spark
    project: Project
    table: Table
    tables: Sequence[Table]
    sought: Sequence[Sought]
    id: str

    def steps(self) -> Iterator[Done]:
        """Take all steps; yield what each has done."""
        yield from self._rows()
        yield from self._delete_quarantined()
        if head(layout(self.project).uri(self.table.delivered_to)):
            yield from self._bring_views()
        yield from self._samples()
        yield from self._delete_dropped()
        yield from self._files()

    @cached_property
    def run(self) -> Run:
        """The run that the commits belong to."""
        return Run(f"{KIND}-{self.id}")

    def _record(self, place: str, what: str, count: int | None, version: int | None = None) -> Done:
        return Done(place, what, count, version, datetime.now(UTC).isoformat(timespec="seconds"))

    def _rows(self) -> Iterator[Done]:
        """Delete the delivered rows; commit even if there are none, so others plan again."""
        for holder in delivered_in(self.table):
            if done := repeat_after_races(partial(self._delete, holder), ATTEMPTS):
                yield self._record(holder.id, "rows deleted", done.deleted, done.version)

    def _delete(self, holder: Holder) -> Committed | None:
        """Delete the rows in a table; do nothing if it was never filled."""
        uri = layout(self.project).uri(holder.id)
        at = head(uri)
        if at is None or at.position is None:
            return None
        attempt = uuid.uuid4().hex
        position = replace(
            at.position,
            batch=at.next_batch,
            attempt=attempt,
            kind=KIND,
            run=self.run.id,
            unchanged_since=None,
        )
        gone = rows_of_any(self.sought, uri, at.version)
        if not gone.num_rows:
            return commit_position(at, position)
        changelog = gone.append_column(CHANGE, pa.array(["delete"] * gone.num_rows))
        return commit_arrow(at, changelog, holder.key, position, self.project.limits)

    def _delete_quarantined(self) -> Iterator[Done]:
        """Delete quarantined rows of the subjects, and correct the counts of deliveries."""
        uri = layout(self.project).uri
        place = uri(self.table.id, QUARANTINE)
        if count := sum(without(place, sought) for sought in self.sought):
            yield self._record(internal(self.table.id, QUARANTINE), "rows deleted", count)
        intervals.recount(uri(self.table.id, INTERVALS), self._count_left)

    def _count_left(self) -> intervals.Counts:
        uri = layout(self.project).uri
        place = uri(self.table.id, QUARANTINE)
        is_by_interval = self.table.is_ingested and not self.table.spec.delivered_beside
        return (
            rows_by(place, INTERVAL) if exists(place) else {},
            rows_by(uri(self.table.id), INTERVAL) if is_by_interval else None,
        )

    def _bring_views(self) -> Iterator[Done]:
        """Bring the source and its views up to date, and yield how many rows each has changed."""
        ids = {table.id for table in self.tables}
        self._unmark(self.table)  # before others name its version
        follow = delivering(self.table).follow
        reports = list(follow(self.spark, self.project, self.table, self.run))
        self._unmark(self.table)
        for table in self.tables[1:]:
            if table.is_stored and exists(layout(self.project).uri(table.id)):
                work = rebuild if looks_up(self.project, table, ids) else advance
                reports += work(self.spark, self.project, table, self.run)
                self._unmark(table)
        for report in reports:
            yield from self._of_batch(report)

    def _of_batch(self, report: BatchReport) -> Iterator[Done]:
        if report.outcome == "waiting":
            raise Retryable(
                f"{self.table.id}: {'; '.join(report.warnings)}",
                hint="run its pipeline; then run this again: it continues from here",
            )
        if report.outcome == "committed":
            others = {"inserted": report.inserted, "updated": report.updated}
            rest = ", ".join(f"{count} {word}" for word, count in others.items() if count)
            what = f"rows deleted, {rest}" if rest else "rows deleted"
            yield self._record(report.table, what, report.deleted, report.version)

    def _samples(self) -> Iterator[Done]:
        """Take samples of rows out of results, failures and the report."""
        lake = layout(self.project)
        place = f"{lake.root}/{history.TABLE}"
        for table in self.tables:
            failures.clear(lake, table.id)
            chosen = [("pipeline", "=", table.pipeline), ("table", "=", table.name)]
            count, _ = change_rows(place, history.without_samples, chosen)
            if count:
                yield self._record(history.TABLE, f"results of {table.id} cleaned", count)
        remove(f"{lake.root}/{REBUILT}/{self.table.id}")
        if (folder := report_folder(self.project)).is_dir():
            remove(str(folder))
            publish(self.project)
            yield self._record(REPORT, "report written again", None)

    def _delete_dropped(self) -> Iterator[Done]:
        """Delete dropped tables that were made from the source's rows."""
        ids = {table.id for table in self.tables}
        for name in dropped_from(layout(self.project), ids):
            remove(f"{layout(self.project).root}/{DROPPED}/{name}")
            yield self._record(f"{DROPPED}/{name}", "dropped table deleted", None)

    def _files(self) -> Iterator[Done]:
        """Erase the past of every table that had these rows."""
        lake = layout(self.project)
        places = {
            f"{t.pipeline}.{folder}": f"{lake.root}/{t.pipeline}/{folder}"
            for t in self.tables
            for folder in folders_of(lake, t.id)
        }
        places[history.TABLE] = f"{lake.root}/{history.TABLE}"
        for place, uri in places.items():
            if exists(uri):
                done = erase_past(uri, datetime.now(UTC))
                what = f"{done.entries} log entries cleaned, files deleted"
                yield self._record(place, what, done.files)

    def _unmark(self, table: Table) -> None:
        """Rewrite files whose deleted rows are only marked."""

        def every() -> None:
            for kept in kept_in(table, self.project):
                if filing := kept.filing:
                    unmark(filing, filing.slices)

        repeat_after_races(every, ATTEMPTS)
