"""The overview of pipelines, and the page of one table.

Also the page of an explanation of one row, by what `sluice why --json` says of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from io import StringIO
from itertools import islice
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from sluice.declare.column_lineage import made_from
from sluice.declare.project import Pipeline, Project
from sluice.declare.registry import kind
from sluice.declare.table import Graph, Table
from sluice.delta import intervals
from sluice.delta.places.lake_layout import layout
from sluice.errors import SluiceError
from sluice.language.interval import newest
from sluice.language.names import INTERVALS, STATE, internal
from sluice.pages import (
    Address,
    Card,
    Cards,
    Chapter,
    Content,
    Entry,
    Listing,
    Page,
    Properties,
    Text,
    cell,
    data,
    moment,
    pluralize,
    tile,
)
from sluice.read.commits import Commit, back_from
from sluice.read.lake import Lake
from sluice.read.status import TableStatus, status
from sluice.report import Visit, pipeline_of
from sluice.report.graph import draw_columns, draw_graph
from sluice.report.health import FAILED, WHOLE, Health, chapter, columns, failure, health


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


@runtime_checkable
class Block(Protocol):
    """Kind with a block on the page."""

    def chapters(self, lake: Lake, table: Table, why: Address) -> Iterable[Chapter]:
        """Return the rows that are worth a look.

        `why` gives the address of a row's explanation, by options of `sluice why` that name it.
        """


COMMITS = 12
LONGEST = 10_000  # characters of a line of a definition
RUN_NAMES = (
    "Airflow names a run by the end of its interval: with a daily schedule, the run …2014-11-11 "
    "delivers 2014-11-10."
)
WRONG = Text("What is wrong", "wrong")
CHOOSE = Text(
    "Choose a column to see what it is made from, and what is made from it.", "soft small"
)
VERSIONS = (
    ("Version", "number"),
    ("When", "small nowrap"),
    ("What", "small"),
    ("Batch", "number"),
    ("Seconds", "number"),
    ("Bytes read", "number"),
    ("Bytes written", "number"),
    ("Run", "small"),
)


def table(visit: Visit, project: Project, found: Table) -> Page:
    """Return a table's page: its current state, if it is stored, and what it is made from."""
    title, description = f"{found.id} · Sluice", Text(found.description, "line soft")
    path = visit.path(Text(found.pipeline, href=f"{visit.root}/pipelines/{found.pipeline}"))
    made = [
        *chapter("Definition", _definition(project, found)),
        columns(found.columns.items(), found.named_key, _made_from(visit, project, found)),
        Chapter("Column lineage", [draw_columns(visit, found, project.graph), CHOOSE]),
    ]
    if not found.is_stored:
        head = [description, Text("Computed when it is read.", "line soft")]
        return Page(title, found.name, head, made, visit.foot, path)
    (one,) = tables(project, [found])
    kept, problem = one.status.failure, visit.says(one.status.problem)
    if kept:
        kept = replace(kept, reason=visit.says(kept.reason), hint=visit.says(kept.hint))
    return Page(
        title,
        [found.name, " ", chip(one)],
        [description, Properties(list(_properties(visit, one)))],
        [
            *chapter(FAILED, [failure(kept, visit.now)] if kept else []),
            *chapter(WRONG, [problem] if problem else []),
            *chapter("Inputs", inputs(visit, one)),
            *chapter("Not as expected, newest batch", one.health.unmet + one.health.unusual),
            *chapter("As expected, newest batch", one.health.met),
            *_rows(visit, project, one),
            *made,
        ],
        visit.foot,
        path,
    )


def _made_from(visit: Visit, project: Project, found: Table) -> dict[str, Content]:
    """Return the input columns of each column, with links to their tables."""
    said = dict[str, Content]()
    for name, made in made_from(found, project.graph).items():
        parts = list[Content]()
        for one in sorted(made, key=lambda c: (c.table, c.column)):
            parts += [", ", visit.table(one.table, f"{one.table}.{one.column}")]
        said |= {name: parts[1:]} if parts else {}
    return said


def _properties(visit: Visit, one: ShownTable) -> Iterator[tuple[str, Content]]:
    found, stands = one.table, one.status
    made_from = [part for name in found.inputs for part in (", ", visit.table(name))]
    report = Text(" · report", href=f"{visit.root}/report/{found.id}.html")
    yield "Kind", found.declared_kind.replace("_", " ")
    yield "Version", stands.version
    yield "Rows", stands.rows
    yield "Last batch", visit.since(stands.last.at) if stands.last else None
    if found.is_delivered:
        yield "In quarantine", stands.quarantined
    yield "Made from", made_from[1:] or visit.says(found.spec.outside) or "files"
    checked = str(one.health) or "no expectations"
    yield "Quality", [checked, report if f"{found.id}.html" in visit.reports else ""]


def _definition(project: Project, found: Table) -> list[Content]:
    """Return the declaration of what is made from other tables, as YAML."""
    if not found.is_view and not found.inputs:
        return []
    text, yaml = StringIO(), YAML()
    yaml.width = LONGEST
    written = {"kind": found.declared_kind, **project.definition(found)}
    yaml.dump(_in_lines(written), text)
    return [Text(text.getvalue(), "code")]


def _in_lines(value: Any) -> Any:
    """Return a value whose texts of several lines, such as queries, stay so in YAML."""
    match value:
        case dict():
            return {name: _in_lines(one) for name, one in value.items()}
        case list():
            return [_in_lines(one) for one in value]
        case str() if "\n" in value:
            return LiteralScalarString(value)
    return value


def _rows(visit: Visit, project: Project, one: ShownTable) -> Iterator[Chapter]:
    """Yield what the table's kind shows of its rows, and its newest versions."""
    found, version = one.table, one.status.version
    if version is None:
        return
    block = kind(found.kind)
    try:
        if isinstance(block, Block):
            yield from block.chapters(Lake(project), found, partial(visit.why, found.id))
    except SluiceError as error:
        yield from chapter(WRONG, [visit.says(str(error))])
    commits = islice(back_from(layout(project).uri(found.id), version), COMMITS)
    rows = [_version(visit, found, commit) for commit in commits]
    is_named = visit.airflow is not None and found.spec.is_by_interval
    named = Text(RUN_NAMES, "soft small") if is_named else ""
    yield Chapter("Newest versions", [Listing(VERSIONS, rows), named])


def _version(visit: Visit, found: Table, commit: Commit) -> list[Content]:
    at = commit.position
    what = at.kind if at else commit.operation.lower()
    said = [what, "" if commit.changes_data else Text(" changed no row", "soft")]
    run = visit.run(found.pipeline, at.run if at else None)
    cost = at.cost if at else {}
    seconds = f"{cost['seconds']:,.1f}" if "seconds" in cost else None
    batch = [at.batch if at else None, seconds, cost.get("read"), commit.written]
    return [commit.version, visit.since(commit.at), said, *batch, run]


ANOTHERS = "Rows, runs and files of {} are not shown, because you may not see them."


def page(visit: Visit, table: Table, answer: Mapping[str, Any]) -> Page:
    """Return the page of an explanation."""
    title, path = f"Why · {table.id} · Sluice", visit.path(visit.table(table.id))
    heading, trouble = "Why this row is here", answer.get("trouble")
    if trouble:
        wrong = chapter(Text("It can't be shown", "wrong"), [visit.says(trouble)])
        return Page(title, heading, (), wrong, visit.foot, path)
    properties: list[tuple[str, Content]] = [
        ("Last change", f"{answer['change']}, version {answer['version']}"),
        ("When", answer["at"]),
        ("Batch", answer["batch"]),
        ("Run", visit.run(table.pipeline, answer["run"])),
    ]
    parts = [p for p in answer["from"] if not p["table"].endswith(internal("", STATE))]
    inputs = (_input(visit, part) for part in parts if visit.sees_table(part["table"]))
    others = {pipeline_of(p["table"]) for p in parts if not visit.sees_table(p["table"])}
    hidden = [ANOTHERS.format(", ".join(sorted(others)))] if others else []
    rows = [_change(answer), *inputs, *chapter("From other pipelines", hidden)]
    return Page(title, heading, [Properties(properties)], rows, visit.foot, path)


def _change(answer: Mapping[str, Any]) -> Chapter:
    before, after = answer["before"] or {}, answer["after"] or {}
    columns = [(name, "mono") for name in ("Column", "Before", "After")]
    rows = [
        [name, *(cell(row[name]) if row else None for row in (before, after))]
        for name in after or before
    ]
    return Chapter("The row, before and after that change", [Listing(columns, rows)])


def _input(visit: Visit, part: Mapping[str, Any]) -> Chapter:
    version = "" if part["version"] is None else f", version {part['version']}"
    rows, many = part["rows"], pluralize(part["count"], "row")
    few = f", the first {len(rows):,} shown" if len(rows) < part["count"] else ""
    count = Text(f" {many}{version}{few}", "soft small")
    deliveries = [_delivery(visit, part, one) for one in part["deliveries"]]
    table = data(rows, list(rows[0])) if rows else ""
    shown = [table, Card(deliveries) if deliveries else ""]
    return Chapter(["From ", visit.table(part["table"]), count], shown)


def _delivery(visit: Visit, part: Mapping[str, Any], one: Mapping[str, Any]) -> Entry:
    made = one["commit"] or {}
    run = [", in ", visit.run(pipeline_of(part["table"]), made["run"])] if made.get("run") else ""
    interval = f"[{one['interval_start']}, {one['interval_end']})"
    files = [Text(file, "line") for file in one["files"]]
    return Entry([f"{pluralize(one['rows'], 'row')} delivered by {interval}", run], detail=files)
