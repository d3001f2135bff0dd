"""The page of one table: its state, what its kind shows, its newest versions, its columns.

Also the page of an explanation of one row, by what `sluice why --json` says of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from io import StringIO
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from sluice.declare.column_lineage import made_from
from sluice.declare.project import Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.delta.places.lake_layout import layout
from sluice.errors import SluiceError
from sluice.language.names import STATE, internal
from sluice.pages import (
    Address,
    Card,
    Chapter,
    Content,
    Entry,
    Listing,
    Page,
    Properties,
    Text,
    cell,
    data,
    pluralize,
)
from sluice.read.commits import Commit, back_from
from sluice.read.lake import Lake
from sluice.report.graph import draw_columns
from sluice.report.health import FAILED, chapter, columns, failure
from sluice.report.overview import ShownTable, chip, inputs, tables
from sluice.report.visit import Visit, pipeline_of


@runtime_checkable
class Block(Protocol):
    """Kind with a block on the page."""

    def chapters(self, lake: Lake, table: Table, why: Address) -> Iterable[Chapter]:
        """Return the rows that are worth a look.

        `why` gives the address of a row's explanation, by options of `sluice why` that name it.
        """
        ...


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
