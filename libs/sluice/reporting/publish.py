"""Publishing the quality report of a lake: facts gathered without Spark, written as HTML.

Local lakes get it beside their tables, at `<lake>/__quality/report/index.html`; for lakes in an
object store it is written to `quality.reports` of the settings, below the project's folder.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sluice.quality.digest import TableFacts
from sluice.quality.history import TABLE as RESULTS
from sluice.quality.report import FOLDER, render, write
from sluice.serving.status import TableStatus, status
from sluice.specs.project import Project
from sluice.specs.table import Table
from sluice.storage.arrow import read_rows
from sluice.storage.lake import layout

INTERVALS = "intervals"
Row = Mapping[str, Any]


def publish(project: Project) -> Path:
    """The path of the report's first page, written anew."""
    lake = layout(project)
    results = _by_table(read_rows(f"{lake.root}/{RESULTS}"))
    states = {s.table: s for s in status(project)}
    tables = [t for t in project.graph.tables.values() if t.id in states]
    facts = [_facts(project, t, states[t.id], results[t.id]) for t in tables]
    return write(report_folder(project), render(lake.root, facts, datetime.now(UTC)))


def report_folder(project: Project) -> Path:
    """Where the report lies."""
    root = layout(project).root
    if "://" in root:
        return Path(project.resolve(project.quality.reports))
    return Path(root) / FOLDER


def _by_table(results: Iterable[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in results:
        found[f"{row['pipeline']}.{row['table']}"].append(row)
    return found


def _facts(project: Project, table: Table, state: TableStatus, results: list[Row]) -> TableFacts:
    intervals: list[dict[str, Any]] = []
    if table.kind == "source":
        intervals = read_rows(layout(project).uri(table.id, INTERVALS))
    return TableFacts(
        pipeline=table.pipeline,
        table=table.name,
        kind=table.kind,
        version=state.version,
        row_count=state.rows,
        updated_at=state.last.at if state.last else None,
        columns=tuple(table.columns.items()),
        results=tuple(results),
        intervals=tuple(intervals),
    )
