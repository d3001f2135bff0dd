"""Pipelines and tables as they are, gathered without Spark."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.notes import intervals
from sluice.delta.places.lake_layout import layout
from sluice.language.internal import INTERVALS
from sluice.read.status import TableStatus, status
from sluice.report.health import Health, health


@dataclass(frozen=True)
class ShownTable:
    """State of one table; `until` is the end of what was delivered to a source."""

    table: Table
    status: TableStatus
    health: Health
    until: datetime | None = None

    @property
    def state(self) -> str:
        """A few words for its urgency."""
        stands = self.status
        if stands.problem or stands.failure:
            return "stopped"
        if stands.blocked_by:
            return "blocked"
        if stands.is_incomplete:
            return "incomplete"
        if stands.version is None:
            return "not built"
        return "behind" if stands.is_behind else "up to date"


def tables(project: Project, chosen: Iterable[Table]) -> list[ShownTable]:
    """Return the current state of those that are stored."""
    stored = [table for table in chosen if table.is_stored]
    checked = health(project, stored)
    return [
        ShownTable(found, stands, checked[found.id], _until(project, found))
        for found, stands in zip(stored, status(project, stored, asks_brokers=True), strict=True)
    ]


def _until(project: Project, found: Table) -> datetime | None:
    """Return the end of the last delivered interval."""
    if not found.is_ingested:
        return None
    known = intervals.deliveries(layout(project).uri(found.id, INTERVALS))
    return max((one.interval.end for one in known), default=None)
