"""Preview of work: its effect on each table, found by running it in a lake beside the real one.

The work is the same code on the same versions, so its counts are those of the run that follows if
nothing lands meanwhile. Nothing of it reaches the lake, not even a failure. Cost: that of the work,
and a name for each file of the tables that it reads or writes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists, open_version
from sluice.delta.places.lake_layout import layout
from sluice.delta.places.overlay import overlay
from sluice.engine import BatchReport
from sluice.errors import SluiceError
from sluice.language.names import PREVIEWS, declared_id

if TYPE_CHECKING:
    from sluice.read.changelog import Sample

DONE = ("committed", "position")


@dataclass(frozen=True)
class Previewed:
    """Outcome foreseen for one table, summed over its batches, with some of the changed rows.

    `outcome`: committed, unchanged, failed, skipped or waiting.
    """

    table: str
    outcome: str
    batches: int
    rows_in: int | None
    inserted: int
    updated: int
    deleted: int
    quarantined: int
    expired: int
    error: str = ""
    samples: "tuple[Sample, ...]" = ()


@dataclass(frozen=True)
class Preview:
    """Work on `project`, whose lake is not the real one; `before`: versions of its tables."""

    project: Project
    real: str
    before: dict[str, int]

    def results(self, reports: Iterable[BatchReport], most: int) -> list[Previewed]:
        """Return what happened to each table, in order, with up to `most` changed rows of each."""
        by_table: dict[str, list[BatchReport]] = defaultdict(list)
        for report in reports:
            by_table[declared_id(report.table)].append(self.as_real(report))
        return [self._result(table, batches, most) for table, batches in by_table.items()]

    def as_real(self, report: BatchReport) -> BatchReport:
        """Return a report that names the real lake."""
        return replace(
            report,
            error=self._name_real_lake(report.error),
            hint=self._name_real_lake(report.hint),
            warnings=tuple(map(self._name_real_lake, report.warnings)),
        )

    def _result(self, table_id: str, reports: Sequence[BatchReport], most: int) -> Previewed:
        done = [r for r in reports if r.outcome in DONE]
        visible = [r for r in done if r.table == table_id]
        first = [r.rows_in for r in done if r.table == done[0].table and r.rows_in is not None]
        bad = next((r for r in reports if r.outcome not in (*DONE, "unchanged")), None)
        return Previewed(
            table_id,
            bad.outcome if bad else "committed" if done else "unchanged",
            len(visible),
            sum(first) if first else None,
            inserted=sum(r.inserted for r in visible),
            updated=sum(r.updated for r in visible),
            deleted=sum(r.deleted for r in visible),
            quarantined=sum(r.quarantined for r in done),
            expired=sum(r.expired for r in done),
            error=bad.error if bad else "",
            samples=tuple(self._samples(table_id, most)) if most and visible else (),
        )

    def _samples(self, table_id: str, most: int) -> "Iterator[Sample]":
        from sluice.read.changelog import samples
        from sluice.read.lake import Lake

        table = self.project.graph.tables[table_id]
        return samples(Lake(self.project), table, self.before.get(table_id), most)

    def _name_real_lake(self, text: str) -> str:
        return text.replace(layout(self.project).root, self.real)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Let errors name the real lake."""
        try:
            yield
        except SluiceError as error:
            error.message, error.hint = (
                self._name_real_lake(error.message),
                self._name_real_lake(error.hint),
            )
            error.args = (error.message,)
            raise


@contextmanager
def previewing(project: Project, tables: Iterable[Table]) -> Iterator[Preview]:
    """Yield a preview of work on these tables; nothing of it is left afterwards."""
    lake = layout(project)
    with overlay(lake, _read_by(project, tables)) as beside:
        there = project.model_copy(update={"lake": beside.root})
        stored = [t.id for t in project.graph.tables.values() if t.is_stored]
        uris = {name: beside.uri(name) for name in stored}
        before = {name: open_version(uri).version() for name, uri in uris.items() if exists(uri)}
        preview = Preview(there, lake.root, before)
        with preview.naming():
            yield preview


def is_preview(project: Project) -> bool:
    """True if the project's lake is one of a preview."""
    return f"/{PREVIEWS}/" in layout(project).root


def downstream(project: Project, tables: Sequence[Table]) -> list[Table]:
    """Return the stored views that depend on any of these tables, inputs first."""
    graph, ids = project.graph, {t.id for t in tables}
    others = (t for t in graph.tables.values() if t.is_view and t.is_stored and t.id not in ids)
    return [t for t in others if any(above.id in ids for above in graph.ancestors(t.id))]


def _read_by(project: Project, tables: Iterable[Table]) -> list[str]:
    """Return the stored tables among these and all that they are made from, by id."""
    graph, found, waiting = project.graph, set[str](), list(tables)
    while waiting:
        table = waiting.pop()
        if table.id not in found:
            found.add(table.id)
            waiting += [graph.tables[n] for n in table.reads if n in graph.tables]
    return [t.id for t in graph.tables.values() if t.id in found and t.is_stored]
