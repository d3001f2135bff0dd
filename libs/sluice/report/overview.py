"""The overview of pipelines; and what a table lacks or waits for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from sluice.declare.project import Pipeline, Project
from sluice.declare.table import Graph, Table
from sluice.delta.notes import intervals
from sluice.delta.places.lake_layout import layout
from sluice.language.interval import newest
from sluice.language.names import INTERVALS
from sluice.pages import (
    Card,
    Cards,
    Chapter,
    Content,
    Listing,
    Page,
    Text,
    moment,
    pluralize,
    tile,
)
from sluice.read.status import TableStatus, status
from sluice.report.graph import draw_graph
from sluice.report.health import WHOLE, Health, chapter, health
from sluice.report.visit import Visit


@dataclass(frozen=True)
class ShownTable:
    """State of one table; `until` is the end of what was delivered to a source."""

    table: Table
    status: TableStatus
    health: Health
    until: datetime | None = None


def tables(project: Project, chosen: Iterable[Table]) -> list[ShownTable]:
    """Return the current state of these tables, without those that are not stored."""
    stored = [table for table in chosen if table.is_stored]
    checked = health(project, stored)
    return [
        ShownTable(found, stands, checked[found.id], _until(project, found, stands))
        for found, stands in zip(stored, status(project, stored, asks_brokers=True), strict=True)
    ]


def _until(project: Project, found: Table, stands: TableStatus) -> datetime | None:
    if not found.is_ingested or stands.problem:
        return None
    known = intervals.deliveries(layout(project).uri(found.id, INTERVALS))
    return max((one.interval.end for one in known), default=None)


LOOKS = {
    "up to date": "passed",
    "behind": "warned",
    "incomplete": "warned",
    "blocked": "warned",
    "stopped": "stopped",
    "not built": "none",
}
COLUMNS = (
    ("Table", ""),
    ("State", ""),
    ("Inputs", "small wide"),
    ("Last batch", "small"),
    ("Version", "number"),
    ("Rows", "number"),
    ("Quality", "small nowrap"),
)
RUNS = {
    "success": "passed",
    "running": "running",
    "up_for_retry": "warned",
    "failed": "stopped",
    "upstream_failed": "stopped",
}
NO_TABLES, NO_RUNS = Graph(), MappingProxyType[str, str]({})
NOBODYS = "This DAG is none of Sluice's pipelines, or you may not see it. "

Shown = tuple[Pipeline, Sequence[ShownTable]]  # in the order in which they are brought up to date


def overview(
    visit: Visit,
    pipelines: Sequence[Shown],
    mistakes: Sequence[str] = (),
    graph: Graph = NO_TABLES,
    runs: Mapping[str, str] = NO_RUNS,
) -> Page:
    """Return the page of these pipelines, whose tables are drawn as they are in the graph.

    `runs`: the states of tables' tasks in the last run, which then colour the graph.
    """
    environment = f", environment {visit.environment}" if visit.environment else ""
    listed = [_pipeline(visit, *one) for one in pipelines]
    wrong = chapter(Text("Mistakes in the configuration", "wrong"), mistakes)
    states = {
        one.table.id: (one.status.state, LOOKS[one.status.state])
        for _, shown in pipelines
        for one in shown
    }
    states |= {
        table: (f"{run} in the last run", RUNS.get(run, "none")) for table, run in runs.items()
    }
    members = [t for declared, _ in pipelines for t in graph.pipeline(declared.name)]
    drawn = [Chapter("From sources to views", [draw_graph(visit, members, states)])]
    nothing = Text("There is no pipeline that you may see.", "line soft")
    return Page(
        "Sluice",
        "Status of the tables",
        [Cards(_tiles([one for _, tables in pipelines for one in tables]))],
        [wrong, drawn if members else [], listed or nothing],
        visit.foot,
        f"Sluice{environment}",
    )


def not_a_sluice_dag(visit: Visit, name: str) -> Page:
    """Return the page shown for a DAG that Sluice did not make."""
    every = Text("All pipelines", href=f"{visit.root}/")
    return Page("Sluice", name, (), [[NOBODYS, every]], visit.foot, "Sluice")


def _tiles(tables: Sequence[ShownTable]) -> list[Card]:
    states = [one.status.state for one in tables]
    unmet = sum(len(one.health.unmet) for one in tables)
    return [
        tile(states.count("up to date"), "tables reflect all of their inputs", len(tables)),
        tile(states.count("behind"), "are behind"),
        tile(states.count("stopped") + states.count("blocked"), "are stopped or blocked"),
        tile(sum(one.status.is_incomplete for one in tables), "lack files or intervals"),
        tile(unmet, "expectations not met, newest batches"),
        tile(sum(one.status.quarantined for one in tables), "rows in quarantine"),
    ]


def _pipeline(visit: Visit, declared: Pipeline, tables: Sequence[ShownTable]) -> Chapter:
    lasts = (one.status.last for one in tables)
    newest = max((last.at for last in lasts if last), default=None)
    said = [f" {declared.schedule.expression} · last written ", visit.since(newest)]
    title: Content = [visit.dag(declared.name), Text(said, "soft small")]
    rows = Listing(COLUMNS, [_row(visit, one) for one in tables], "stacked")
    has_intervals = any(one.table.spec.is_by_interval for one in tables)
    action = visit.deliver(declared.name) if has_intervals else ""
    return Chapter(title, [Text(declared.description, "line soft"), action, rows])


def _row(visit: Visit, one: ShownTable) -> list[Content]:
    s, checked = one.status, one.health
    kind = Text(one.table.declared_kind.replace("_", " "), "soft small nowrap")
    said = Text(f"{s.last.kind} {s.last.number}", "soft nowrap") if s.last else ""
    bad = Text(f"{s.quarantined:,} quarantined", "line small warned nowrap")
    look = "wrong" if checked.unmet else "warned" if checked.unusual else "soft"
    return [
        [visit.table(one.table.id, one.table.name, "name"), " ", kind],
        chip(one),
        [*_wrong(visit, one), *inputs(visit, one)],
        [visit.since(s.last.at), " ", said] if s.last else None,
        s.version,
        [s.rows, bad if s.quarantined else ""],
        Text(str(checked) or "–", look, title="\n".join(checked.unmet + checked.unusual)),
    ]


def chip(one: ShownTable) -> Text:
    """Return the state of a table."""
    return Text(one.status.state, f"chip {LOOKS[one.status.state]}")


def _wrong(visit: Visit, one: ShownTable) -> Iterator[Text]:
    s = one.status
    if s.failure:
        said = ["failed ", visit.since(s.failure.at), f": {visit.says(s.failure.reason)}"]
        yield Text(said, "line wrong", title=visit.says(s.failure.hint))
    if s.problem:
        yield Text(visit.says(s.problem), "line wrong")


def inputs(visit: Visit, one: ShownTable) -> Iterator[Text]:
    """Yield a line for each thing that a table lacks, waits for or has received."""
    s = one.status
    for name in s.blocked_by if not s.failure else ():
        yield Text(["blocked: ", visit.table(name), " failed"], "line warned")
    for span in s.missing:
        yield Text(f"missing: {span}", "line warned")
    if s.without_files:
        yield Text(f"no files: {newest(s.without_files)}", "line warned")
    for lag in s.lag:
        said = [f": {pluralize(lag.versions, 'version')}", *_since(visit, lag.since)]
        yield Text([visit.table(lag.input), *said], "line")
    for part in s.unread:
        if part.messages:
            yield Text([visit.says(f"{part.shown} unread"), *_since(visit, part.since)], "line")
    if s.unheard:
        yield Text(visit.says(s.unheard), "line warned")
    if s.caution:
        yield Text(f"{WHOLE}: {visit.says(s.caution)}", "line warned")
    if one.until:
        yield Text(f"delivered until {moment(one.until)}", "line soft")


def _since(visit: Visit, at: datetime | None) -> list[Content]:
    return [f", since {moment(at)} (", visit.since(at), ")"] if at else []
