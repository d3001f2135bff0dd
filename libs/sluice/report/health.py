"""Health of each table's data at its newest check, in a few words; reads no result in full."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.places.lake_layout import layout
from sluice.gate.counting import batch_counts
from sluice.gate.outcomes.history import TABLE as RESULTS
from sluice.gate.outcomes.standing import by_table, newest
from sluice.language.row import Row
from sluice.read.stored.scan import Scan
from sluice.read.stored.snapshot import NotBuilt, Snapshot

COLUMNS = ("pipeline", "table", "checked_at", "says", "on_failure", "success", "observed")


@dataclass(frozen=True)
class Health:
    """Newest check of a table: the number of expectations, those not met, what was unusual."""

    expectations: int = 0
    unmet: tuple[str, ...] = ()
    unusual: tuple[str, ...] = ()
    checked_at: dt.datetime | None = None

    def __str__(self) -> str:
        met = self.expectations - len(self.unmet)
        said = [f"{met} of {self.expectations} met"] if self.expectations else []
        return ", ".join([*said, "unusual"] if self.unusual else said)


def health(project: Project, tables: Iterable[Table]) -> dict[str, Health]:
    """Return the health of these tables by their ids."""
    checks = _newest(project)
    return {t.id: _health(project, t, checks.get(t.id, ())) for t in tables}


def _health(project: Project, table: Table, rows: Sequence[Row]) -> Health:
    unmet = tuple(
        f"{r['on_failure']}: {r['says']}: {r['observed']}" for r in rows if not r["success"]
    )
    unusual: tuple[str, ...] = ()
    if table.is_delivered:
        kept = batch_counts.read(layout(project), table.id)
        unusual = batch_counts.newest(kept).unusual if kept else ()
    found = tuple(what.removeprefix(f"{table.id}: ") for what in unusual)
    return Health(len(rows), unmet, found, rows[0]["checked_at"] if rows else None)


def _newest(project: Project) -> dict[str, list[Row]]:
    """Return the rows of each table's newest check."""
    try:
        stored = Snapshot.open("results", f"{layout(project).root}/{RESULTS}")
    except NotBuilt:
        return {}
    rows = (row for page in Scan(stored).unordered(COLUMNS) for row in page.to_pylist())
    return {name: newest(found) for name, found in by_table(rows).items()}
