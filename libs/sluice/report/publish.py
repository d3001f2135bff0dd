"""Publication of a lake's quality report, gathered without Spark, and of previews, as HTML.

Local lakes get it beside their tables, at `<lake>/__quality/report/index.html`. For lakes in an
object store it is written to `quality.reports` of the settings, below the project's folder.
Expectations over whole tables are checked first, as far as that takes no Spark.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta import intervals
from sluice.delta.note_tables import read_rows, tidy_rows
from sluice.delta.places.lake_layout import layout
from sluice.gate import counts, engine
from sluice.gate.history import MANY_FILES, by_table, newest_of_each
from sluice.gate.history import TABLE as RESULTS
from sluice.language.names import INTERVAL, INTERVALS, QUARANTINE, Row
from sluice.pages import Chapter, Listing, Page, Text, cell, moment
from sluice.read.scan import Scan
from sluice.read.snapshot import NotBuilt, Snapshot
from sluice.read.status import TableStatus, status
from sluice.report.health import replace_page
from sluice.report.quality_pages import FOLDER, render, write
from sluice.report.summary import TableRecord
from sluice.report.sweep import sweep, whole_table

SHOWN = (INTERVAL, "reason", "raw", "file")
OF_A_REASON = 5
MOST_LOOKED_AT = 5_000  # rows in quarantine, searched for the newest ones


def publish(project: Project) -> Path:
    """Write the report again, and return the path of its first page."""
    lake = layout(project)
    for table in project.graph.tables.values():
        if whole_table(table):
            sweep(project, table, run="report")
    tidy_rows(f"{lake.root}/{RESULTS}", MANY_FILES, newest_of_each)
    results = by_table(read_rows(f"{lake.root}/{RESULTS}"))
    docs = engine.pages(results) if project.quality.data_docs else {}
    docs = {file: project.hide(page) for file, page in docs.items()}
    states = {s.table: s for s in status(project)}
    tables = [t for t in project.graph.tables.values() if t.id in states]
    gathered = [_record(project, t, states[t.id], results.get(t.id, [])) for t in tables]
    files = {t.id: file for t in tables if (file := engine.file_of(t.id)) in docs}
    linked = [replace(one, data_docs=files.get(one.table.id, "")) for one in gathered]
    shown = lake.root if "://" in lake.root else Path(lake.root).name  # no path of this machine
    pages = render(shown, linked, datetime.now(UTC))
    return write(report_folder(project), docs | pages)


def report_folder(project: Project) -> Path:
    """Return the folder of the report."""
    root = layout(project).root
    if "://" in root:
        return Path(project.resolve(project.quality.reports))
    return Path(root) / FOLDER


def _record(project: Project, table: Table, state: TableStatus, results: list[Row]) -> TableRecord:
    lake, says = layout(project), project.hide
    kept = counts.read_counts(lake, table.id) if table.is_delivered else []
    if failed := state.failure:
        failed = replace(failed, reason=says(failed.reason), hint=says(failed.hint))
    noted = intervals.notes(lake.uri(table.id, INTERVALS)) if table.is_delivered else []
    return TableRecord(
        table,
        replace(state, failure=failed, caution=says(state.caution)),
        tuple(_columns(project, table)),
        tuple(e.label for e in table.expect),
        tuple(r | {name: says(r[name]) for name in ("says", "observed")} for r in results),
        tuple(replace(one, unusual=tuple(map(says, one.unusual))) for one in kept),
        tuple(noted),
        tuple(_set_apart(project, table)) if table.is_delivered else (),
    )


def _columns(project: Project, table: Table) -> Iterator[tuple[str, str]]:
    """Yield the declared columns, and those that the table took from files."""
    yield from table.columns.items()
    try:
        stored = Snapshot.open(table.name, layout(project).uri(table.id))
    except NotBuilt:
        return
    taken = (name for name in stored.visible if name not in table.columns)
    yield from ((name, f"{stored.type_of(name)}, taken from files") for name in taken)


def _set_apart(project: Project, table: Table) -> list[Row]:
    """Return the newest rows in quarantine, a few of each reason, as many as are shown."""
    try:
        stored = Snapshot.open(table.name, layout(project).uri(table.id, QUARANTINE))
    except NotBuilt:
        return []
    pages = Scan(stored).read_unordered(SHOWN, MOST_LOOKED_AT)
    rows = [
        row | {"reason": row["reason"] and project.hide(row["reason"])}
        for page in pages
        for row in page.to_pylist()
    ]
    newest_first = sorted(rows, key=lambda row: row[INTERVAL], reverse=True)
    return list(_of_each_reason(newest_first))[: project.quality.samples]


def _of_each_reason(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield a few rows of each reason, so that a reason of many rows hides no other."""
    seen: Counter[str] = Counter()
    for row in rows:
        seen[row["reason"]] += 1
        if seen[row["reason"]] <= OF_A_REASON:
            yield row


@dataclass(frozen=True)
class Heading:
    """Top of the page; `counts`: fields of each result that its table shows."""

    title: str
    lake: str
    note: str
    counts: Sequence[str]


def write_preview(path: Path, heading: Heading, results: Sequence[Any], now: dt.datetime) -> None:
    """Write the page of results, which have `table`, `outcome`, `error`, `samples` and counts."""
    from sluice.pages import html  # jinja, which few commands use

    counts = [(n.replace("_", " ").capitalize(), "number") for n in heading.counts]
    rows = [
        [one.table, [one.outcome, " ", Text(one.error, "line soft small")]]
        + [getattr(one, name) for name in heading.counts]
        for one in results
    ]
    page = Page(
        f"{heading.title} of {heading.lake}",
        heading.title,
        [Text(heading.lake, "line soft mono"), Text(heading.note, "line soft")],
        [
            Listing([("Table", "name"), ("Outcome", ""), *counts], rows, "stacked"),
            *(Chapter(one.table, [_list_changes(one.samples)]) for one in results if one.samples),
        ],
        f"Written {moment(now)} UTC by Sluice.",
    )
    replace_page(path, html(page))


def _list_changes(samples: Sequence[Any]) -> Listing:
    """Return changed rows, what is gone with − and what is new with +."""
    names = list(samples[0].after or samples[0].before)
    signed = [
        (sign, row) for s in samples for sign, row in (("−", s.before), ("+", s.after)) if row
    ]
    columns = [("", ""), *((name, "mono") for name in names)]
    return Listing(columns, [[sign, *(cell(row[n]) for n in names)] for sign, row in signed])
