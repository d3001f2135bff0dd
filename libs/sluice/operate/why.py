"""Explanation of a row: the commit that wrote its values, and the rows that it comes from.

It names the deliveries that brought rows of a source: their interval, their commit, their files.
The notes name the delivery that is now valid. Where the interval has been delivered again since the
version in question, its commit is not named.

`read_records` and its like give explanations as JSON, for programs: of commands and of the server.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluice.declare.project import Project
from sluice.delta.intervals import deliveries
from sluice.delta.places.lake_layout import layout
from sluice.language.interval import Interval
from sluice.language.names import INTERVAL, INTERVALS, RESERVED_PREFIX, declared_id
from sluice.operate.delivering import delivering
from sluice.operate.lineage import TracedRows, lineage
from sluice.read.changelog import Changelog
from sluice.read.commits import Commit, back_from
from sluice.read.key_order import KeyRange
from sluice.read.keyed import rows_of
from sluice.read.lake import Lake
from sluice.read.naming import Given, Origin, origin, row_of
from sluice.read.scan import Scan

if TYPE_CHECKING:
    from sluice.operate.why_not import AbsenceReason


@dataclass(frozen=True)
class Delivered:
    """One interval of a source, and how many of the rows in question it brought.

    `files`: those of the interval that are there now; of a stream, those of its batch;
    of a topic, none.
    """

    source: str
    interval: Interval
    rows: int
    commit: Commit | None
    files: tuple[str, ...]


def deliveries_of(project: Project, part: TracedRows) -> list[Delivered]:
    """Return the deliveries of a part's rows, in order; none unless they are a source's own."""
    table = project.graph.tables[declared_id(part.table)]
    if not table.is_ingested or part.version is None or INTERVAL not in part.rows.column_names:
        return []
    uri = layout(project).uri
    times = Counter[datetime](part.rows[INTERVAL].drop_null().to_pylist())
    commits = {c.position.batch: c for c in back_from(uri(part.table), part.version) if c.position}
    found = []
    for note in deliveries(uri(table.id, INTERVALS)):
        within = note.interval
        if rows := sum(n for time, n in times.items() if within.start <= time < within.end):
            files = delivering(table).files_read(project, table, note)
            found.append(Delivered(table.id, within, rows, commits.get(note.batch), files))
    return found


@dataclass(frozen=True)
class ContributingRows:
    """Rows of one table that a row comes from, and their deliveries.

    Delivered rows have their hidden columns: interval, position and identity. `untraced`: why their
    origin can't be known; else ''.
    """

    table: str
    version: int | None
    rows: pa.Table
    deliveries: tuple[Delivered, ...]
    untraced: str = ""


@dataclass(frozen=True)
class Why:
    """One row; `origin` is the commit that last changed it."""

    changelog: Changelog
    row: KeyRange
    origin: Origin

    @cached_property
    def sources(self) -> list[ContributingRows]:
        """Rows that it comes from, the nearest tables first; none if it is gone.

        Raises HistoryLost if a version that it was made from is gone, and UsageError if the rows
        can't be found without Spark.
        """
        return sources_of(self.changelog, self.row)


def why(
    lake: Lake,
    name: str,
    /,
    *key: Any,
    partition: Mapping[str, Any] | None = None,
    when: str | None = None,
    version: int | None = None,
    **named: Any,
) -> Why | None:
    """Return the origin of a row, or the last change of its column `when`; None if it never
    existed.

    A row is named by its key, in order or by its columns, or by the options of `sluice why`.
    """
    changelog = Changelog.open(lake, name, version)
    row = row_of(changelog, Given.of(key, partition, named))
    found = origin(changelog, row, when) if row else None
    return Why(changelog, row, found) if row and found else None


def sources_of(changelog: Changelog, row: KeyRange) -> list[ContributingRows]:
    """Return what a row comes from, like `Why.sources`."""
    table, stored = changelog.table, changelog.lake.project.graph.table(changelog.name)
    scan = Scan(table.snapshot, (row,))
    parts = list(scan.read_unordered(tuple(table.snapshot.schema.names)))
    project = changelog.lake.project
    sources = []
    for part in lineage(project, stored, table.version, pa.concat_tables(parts)) if parts else ():
        brought = tuple(deliveries_of(project, part))
        hidden = () if brought else (RESERVED_PREFIX,)
        shown = [name for name in part.rows.column_names if not name.startswith(hidden)]
        rows = part.rows.select(shown)
        sources.append(ContributingRows(part.table, part.version, rows, brought, part.untraced))
    return sources


COMMITS = 5  # of each source


def commit_record(commit: Commit) -> dict[str, Any]:
    """Return a commit: version, time, batch, run and kind."""
    made = commit.position
    return {
        "version": commit.version,
        "at": commit.at,
        "batch": made.batch if made else None,
        "run": made.run if made else None,
        "kind": made.kind if made else commit.operation,
    }


def row_record(found: Origin, sources: Iterable["ContributingRows"], most: int) -> dict[str, Any]:
    """Return why a row is as it is, with the first rows that it comes from, for programs."""
    made = commit_record(found.commit) | change_record(found) | {"reads": read_records(found)}
    return made | {"from": [source_record(source, most) for source in sources]}


def change_record(found: Origin) -> dict[str, Any]:
    """Return what a commit did to a row, and the row before and after it."""
    return {"change": found.change, "before": found.before, "after": found.after}


def read_records(found: Origin) -> list[dict[str, Any]]:
    """Return each source's versions, and the newest of their commits, for programs."""
    return [
        {
            "source": read.source,
            "after_version": read.after,
            "to_version": read.upto,
            "count": len(read.commits),
            "commits": [commit_record(commit) for commit in read.commits[:COMMITS]],
        }
        for read in found.reads
    ]


def source_record(source: "ContributingRows", most: int) -> dict[str, Any]:
    """Return a table that the row comes from, with its first rows, for programs."""
    return {
        "table": source.table,
        "version": source.version,
        "count": source.rows.num_rows,
        "rows": rows_of(source.rows.slice(0, most)),
        "deliveries": [_delivery(delivery) for delivery in source.deliveries],
        "untraced": source.untraced or None,
    }


def _delivery(delivery: "Delivered") -> dict[str, Any]:
    start, end = delivery.interval.start, delivery.interval.end
    commit = commit_record(delivery.commit) if delivery.commit else None
    found = {"interval_start": start, "interval_end": end, "rows": delivery.rows}
    return found | {"commit": commit, "files": delivery.files}


def reason_record(reason: "AbsenceReason", most: int) -> dict[str, Any]:
    """Return a reason with its first rows, for programs."""
    return {
        "table": reason.table,
        "why": reason.why,
        "what": reason.what,
        "count": reason.rows.num_rows if reason.rows else None,
        "rows": rows_of(reason.rows.slice(0, most)) if reason.rows else [],
        "others": rows_of(reason.others.slice(0, most)) if reason.others else [],
    }
