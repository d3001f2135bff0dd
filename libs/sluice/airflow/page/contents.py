"""Contents of the page: pipelines and tables as they are, gathered without Spark, as plain data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, cast

from sluice.airflow.page.block import Block
from sluice.declare.project import Pipeline, Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.delta.notes import intervals
from sluice.delta.places.lake import layout
from sluice.errors import SluiceError
from sluice.language.internal import INTERVALS
from sluice.read.lake import Lake
from sluice.read.status import TableStatus, status
from sluice.read.stored.commits import Commit, back_from
from sluice.report.health import Health, health

COMMITS = 12


@dataclass(frozen=True)
class ShownTable:
    """State of one table; `until` is the end of what was delivered to a source."""

    table: Table
    status: TableStatus
    health: Health
    until: datetime | None = None

    @property
    def state(self) -> str:
        """One word for its urgency."""
        if self.status.problem or self.status.failure:
            return "stopped"
        if self.status.version is None:
            return "empty"
        return "behind" if self.status.is_behind else "fresh"


@dataclass(frozen=True)
class ShownPipeline:
    """A pipeline with its tables, in the order in which they are brought up to date."""

    name: str
    description: str
    schedule: str
    tables: tuple[ShownTable, ...]

    def count(self, state: str) -> int:
        """Return the number of tables in that state."""
        return sum(one.state == state for one in self.tables)

    @property
    def unmet(self) -> int:
        """Expectations that the newest batches did not meet."""
        return sum(len(one.health.unmet) for one in self.tables)

    @property
    def quarantined(self) -> int:
        """Rows in quarantine."""
        return sum(one.status.quarantined for one in self.tables)

    @property
    def newest(self) -> datetime | None:
        """Time of the newest write to a table."""
        return max((one.status.last.at for one in self.tables if one.status.last), default=None)


@dataclass(frozen=True)
class TablePage:
    """Content of a table's own page.

    `template` shows its newest `rows`, in the way of its kind.
    """

    shown: ShownTable
    made_from: tuple[Table, ...]
    commits: tuple[Commit, ...] = ()
    template: str = ""
    rows: Sequence[Any] = ()
    trouble: str = ""


def pipeline(project: Project, declared: Pipeline) -> ShownPipeline:
    """Return the current state of a pipeline's tables."""
    tables = [t for t in project.graph.pipeline(declared.name) if t.is_stored]
    return ShownPipeline(
        declared.name,
        declared.description,
        declared.schedule.expression,
        tuple(_shown(project, tables)),
    )


def table(project: Project, found: Table) -> TablePage:
    """Return a table's current state and its newest rows."""
    (shown,) = _shown(project, [found])
    inputs = tuple(project.graph.tables[name] for name in found.inputs)
    if shown.status.version is None:
        return TablePage(shown, inputs)
    commits = tuple(islice(back_from(layout(project).uri(found.id), shown.status.version), COMMITS))
    try:
        return TablePage(shown, inputs, commits, *_rows(Lake(project), found))
    except SluiceError as error:
        return TablePage(shown, inputs, commits, trouble=str(error))


def _rows(lake: Lake, found: Table) -> tuple[str, Sequence[Any]]:
    block = cast(Block | None, kind(found.kind).part("page"))
    if block is None:
        return "", ()
    return f"{found.kind}/{block.TEMPLATE}", block.shown(lake, found)


def _shown(project: Project, tables: Sequence[Table]) -> Iterator[ShownTable]:
    checked = health(project, tables)
    for found, stands in zip(tables, status(project, tables, asks_brokers=True), strict=True):
        yield ShownTable(found, stands, checked[found.id], _until(project, found))


def _until(project: Project, found: Table) -> datetime | None:
    """Return the end of the last delivered interval."""
    if not found.is_source:
        return None
    known = intervals.deliveries(layout(project).uri(found.id, INTERVALS))
    return max((one.interval.end for one in known), default=None)
