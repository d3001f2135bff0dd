"""Health of each table's data at its newest check, in a few words; reads no result in full."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyarrow.fs import LocalFileSystem

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.failures import Failure
from sluice.delta.places.folders import replace_file
from sluice.delta.places.lake_layout import DamagedLog, MissingFiles, layout
from sluice.gate.counts import last_unusual
from sluice.gate.history import TABLE as RESULTS
from sluice.gate.history import by_table, newest
from sluice.language.names import Row
from sluice.pages import Card, Chapter, Content, Entry, Listing, Text, ago, second
from sluice.read.scan import Scan
from sluice.read.snapshot import NotBuilt, Snapshot
from sluice.read.status import TableStatus

NOTHING: Mapping[str, Content] = MappingProxyType({})
COLUMNS = ("pipeline", "table", "checked_at", "says", "on_failure", "success", "observed")


@dataclass(frozen=True)
class Health:
    """Newest check of a table: the expectations that were met, the others, what was unusual."""

    met: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    unusual: tuple[str, ...] = ()
    checked_at: dt.datetime | None = None

    def __str__(self) -> str:
        met, every = len(self.met), len(self.met) + len(self.unmet)
        said = [f"{met} of {every} met"] if every else []
        return ", ".join([*said, "unusual"] if self.unusual else said)


def health(project: Project, tables: Iterable[Table]) -> dict[str, Health]:
    """Return the health of these tables by their ids."""
    try:
        checks = _newest(project)
    except (DamagedLog, MissingFiles) as error:
        said = f"{error.message}: restore the results from a backup, or move them away"
        return {t.id: Health(unusual=(said,)) for t in tables}
    return {t.id: _health(project, t, checks.get(t.id, ())) for t in tables}


def status_records(
    project: Project,
    found: Iterable[TableStatus],
    undeclared: Iterable[str],
    left_behind: Iterable[str],
) -> list[dict[str, Any]]:
    """Return the status of tables with their health, and tables that nothing declares or uses."""
    rows = [(one, one.state) for one in found]
    checked = health(project, (project.graph.tables[one.table] for one, _ in rows))
    for kind, names in (("undeclared", undeclared), ("left behind", left_behind)):
        rows += [(TableStatus(name, kind), kind) for name in names]
    quality = {name: asdict(one) for name, one in checked.items()}
    return [
        asdict(one) | {"state": state, "quality": quality.get(one.table)} for one, state in rows
    ]


def _health(project: Project, table: Table, rows: Sequence[Row]) -> Health:
    says = project.hide
    met, unmet = (
        tuple(
            says(f"{r['on_failure']}: {r['says']}: {r['observed']}")
            for r in rows
            if r["success"] is is_met
        )
        for is_met in (True, False)
    )
    unusual = last_unusual(layout(project), table.id) if table.is_delivered else ()
    found = tuple(says(what.removeprefix(f"{table.id}: ")) for what in unusual)
    return Health(met, unmet, found, rows[0]["checked_at"] if rows else None)


def _newest(project: Project) -> dict[str, list[Row]]:
    try:
        stored = Snapshot.open("results", f"{layout(project).root}/{RESULTS}")
    except NotBuilt:
        return {}
    rows = (row for page in Scan(stored).read_unordered(COLUMNS) for row in page.to_pylist())
    return {name: newest(found) for name, found in by_table(rows).items()}


WHOLE = "computed whole"
FAILED = Text("Failed, and not fixed since", "wrong")


def chapter(title: Content, said: Iterable[Content]) -> list[Chapter]:
    """Return a chapter with one card of entries; nothing if there are none."""
    entries = [one if isinstance(one, Entry) else Entry(one) for one in said]
    return [Chapter(title, [Card(entries)])] if entries else []


def failure(kept: Failure, now: dt.datetime | None = None, lead: Content = "") -> Entry:
    """Return a failure, with its age if the page is of now."""
    when = f"{second(kept.at)} ({ago(kept.at, now)})" if now else second(kept.at)
    run = f", in {kept.run}" if kept.run else ""
    detail: Content = [f"{when}, exit code {kept.exit_code}{run}", Text(kept.hint, "line")]
    return Entry(kept.reason, lead, detail)


def columns(
    typed: Iterable[tuple[str, str]], key: Iterable[str] = (), made: Mapping[str, Content] = NOTHING
) -> Chapter:
    """Return the names and types of columns; those of the key are marked.

    `made`: what columns are made from.
    """
    marked, mark = {*key}, Text(" key", "soft small")
    heads = [("Column", ""), ("Type", "mono soft"), ("Made from", "small")]
    rows: list[list[Content]] = [
        [[Text(n, "mono"), mark if n in marked else ""], type_, made.get(n)] for n, type_ in typed
    ]
    shown = len(heads) if made else 2
    return Chapter("Columns", [Listing(heads[:shown], [row[:shown] for row in rows])])


def replace_page(path: Path, text: str) -> None:
    """Put a page in place of an earlier one, which readers meet until then."""
    path.parent.mkdir(exist_ok=True)
    half = "backslashreplace"  # half of a surrogate pair, which JSON may hold
    replace_file(LocalFileSystem(), str(path.absolute()), text.encode(errors=half))
