"""The steps that remove subjects' rows from a lake, in order. Each is safe to repeat."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from sluice.changes.diff import CHANGE
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.lost_race import repeated
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.notes import failures, intervals
from sluice.delta.notes.note_tables import change_rows
from sluice.delta.places.folders import remove
from sluice.delta.places.inventory import folders_of
from sluice.delta.places.lake_layout import layout
from sluice.delta.upkeep.erasure import erase_past
from sluice.delta.upkeep.table_invariants import rows_by
from sluice.delta.upkeep.unmarking import unmark
from sluice.delta.writing.commit import commit_arrow, commit_position
from sluice.delta.writing.fence import Committed
from sluice.engine.advance import Run, advance
from sluice.engine.batch_report import BatchReport
from sluice.errors import Retryable
from sluice.gate.outcomes import history
from sluice.language.hidden_columns import INTERVAL
from sluice.language.internal import DROPPED, INTERVALS, QUARANTINE, REBUILT, internal
from sluice.operate.definitions.dependents import dropped_from, looks_up
from sluice.operate.definitions.rebuild import rebuild
from sluice.operate.delivering import delivering
from sluice.operate.erasure.holders import Holder, delivered_in
from sluice.operate.erasure.in_quarantine import without
from sluice.operate.erasure.remains import Sought
from sluice.operate.erasure.subject import rows_of_any
from sluice.operate.upkeep.maintain import kept_in
from sluice.report.publish import publish, report_folder
from sluice.report.quality_pages import FOLDER as REPORT
from sluice.spark.session import Spark

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

    def plain(self) -> dict[str, Any]:
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
        yield from self._quarantined()
        if head(layout(self.project).uri(self.table.delivered_to)):
            yield from self._followed()
        yield from self._samples()
        yield from self._dropped()
        yield from self._files()

    @cached_property
    def run(self) -> Run:
        """The run that the commits belong to."""
        return Run(f"{KIND}-{self.id}")

    def _done(self, place: str, what: str, count: int | None, version: int | None = None) -> Done:
        return Done(place, what, count, version, datetime.now(UTC).isoformat(timespec="seconds"))

    def _rows(self) -> Iterator[Done]:
        """Delete the delivered rows; commit even if there are none, so others plan again."""
        for holder in delivered_in(self.table):
            if done := repeated(partial(self._deleted, holder), ATTEMPTS):
                yield self._done(holder.id, "rows deleted", done.deleted, done.version)

    def _deleted(self, holder: Holder) -> Committed | None:
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

    def _quarantined(self) -> Iterator[Done]:
        """Delete quarantined rows of the subjects, and correct the counts of deliveries."""
        uri = layout(self.project).uri
        place = uri(self.table.id, QUARANTINE)
        if count := sum(without(place, sought) for sought in self.sought):
            yield self._done(internal(self.table.id, QUARANTINE), "rows deleted", count)
        intervals.recount(uri(self.table.id, INTERVALS), self._left)

    def _left(self) -> intervals.Counts:
        """Count the rows that are left of each interval."""
        uri = layout(self.project).uri
        place = uri(self.table.id, QUARANTINE)
        is_by_interval = self.table.is_ingested and not self.table.spec.delivered_beside
        return (
            rows_by(place, INTERVAL) if exists(place) else {},
            rows_by(uri(self.table.id), INTERVAL) if is_by_interval else None,
        )

    def _followed(self) -> Iterator[Done]:
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
            yield self._done(report.table, what, report.deleted, report.version)

    def _samples(self) -> Iterator[Done]:
        """Take samples of rows out of results, failures and the report."""
        lake = layout(self.project)
        place = f"{lake.root}/{history.TABLE}"
        for table in self.tables:
            failures.clear(lake, table.id)
            chosen = [("pipeline", "=", table.pipeline), ("table", "=", table.name)]
            count, _ = change_rows(place, history.without_samples, chosen)
            if count:
                yield self._done(history.TABLE, f"results of {table.id} cleaned", count)
        remove(f"{lake.root}/{REBUILT}/{self.table.id}")
        if (folder := report_folder(self.project)).is_dir():
            remove(str(folder))
            publish(self.project)
            yield self._done(REPORT, "report written again", None)

    def _dropped(self) -> Iterator[Done]:
        """Delete dropped tables that were made from the source's rows."""
        ids = {table.id for table in self.tables}
        for name in dropped_from(layout(self.project), ids):
            remove(f"{layout(self.project).root}/{DROPPED}/{name}")
            yield self._done(f"{DROPPED}/{name}", "dropped table deleted", None)

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
                yield self._erased(uri, place)

    def _erased(self, uri: str, place: str) -> Done:
        done = erase_past(uri, datetime.now(UTC))
        return self._done(place, f"{done.entries} log entries cleaned, files deleted", done.files)

    def _unmark(self, table: Table) -> None:
        """Rewrite files whose deleted rows are only marked."""

        def every() -> None:
            for kept in kept_in(table, self.project):
                if filing := kept.filing:
                    unmark(filing, filing.slices)

        repeated(every, ATTEMPTS)
