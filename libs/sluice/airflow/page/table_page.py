"""The page of one table: its state, what its kind shows, its newest versions, its columns."""

from collections.abc import Iterator
from functools import partial
from itertools import islice

from sluice.airflow.page.block import Block
from sluice.airflow.page.contents import ShownTable, tables
from sluice.airflow.page.overview import chip, inputs
from sluice.airflow.page.visit import Visit
from sluice.declare.project import Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.delta.places.lake_layout import layout
from sluice.errors import SluiceError
from sluice.pages.elements import Chapter, Content, Listing, Page, Properties, Text
from sluice.read.lake import Lake
from sluice.read.stored.commits import Commit, back_from
from sluice.report.entries import FAILED, chapter, columns, failure

COMMITS = 12
RUN_NAMES = (
    "Airflow names a run by the end of its interval: with a daily schedule, the run …2014-11-11 "
    "delivers 2014-11-10."
)
WRONG = Text("What is wrong", "wrong")
VERSIONS = (
    ("Version", "number"),
    ("When", "small nowrap"),
    ("What", "small"),
    ("Batch", "number"),
    ("Run", "small"),
)


def table(visit: Visit, project: Project, found: Table) -> Page:
    """Return a table's page, with its current state and its newest rows."""
    (one,) = tables(project, [found])
    kept = one.status.failure
    return Page(
        f"{found.id} · Sluice",
        [found.name, " ", chip(one)],
        [Text(found.description, "line soft"), Properties(list(_properties(visit, project, one)))],
        [
            *chapter(FAILED, [failure(kept, visit.now)] if kept else []),
            *chapter(WRONG, [one.status.problem] if one.status.problem else []),
            *chapter("Inputs", inputs(visit, one)),
            *chapter("Not as expected, newest batch", one.health.unmet + one.health.unusual),
            *_rows(visit, project, one),
            columns(found.columns.items(), found.named_key),
        ],
        visit.foot,
        visit.path(Text(found.pipeline, href=f"{visit.root}/pipelines/{found.pipeline}")),
    )


def _properties(visit: Visit, project: Project, one: ShownTable) -> Iterator[tuple[str, Content]]:
    found, stands = one.table, one.status
    made = (project.graph.tables[name] for name in found.inputs)
    made_from: list[Content] = [
        part for t in made for part in (", ", visit.table(t.id) if t.is_stored else t.id)
    ]
    report = Text(" · report", href=f"{visit.root}/report/{found.id}.html")
    yield "Kind", found.kind.replace("_", " ")
    yield "Version", stands.version
    yield "Rows", stands.rows
    yield "Last batch", visit.since(stands.last.at) if stands.last else None
    if found.is_delivered:
        yield "In quarantine", stands.quarantined
    yield "Made from", made_from[1:] or found.spec.outside or "files"
    checked = str(one.health) or "no expectations"
    yield "Quality", [checked, report if visit.has_report else ""]


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
        yield from chapter(WRONG, [str(error)])
    commits = islice(back_from(layout(project).uri(found.id), version), COMMITS)
    rows = [_version(visit, found, commit) for commit in commits]
    named = Text(RUN_NAMES, "soft small") if found.spec.is_by_interval else ""
    yield Chapter("Newest versions", [Listing(VERSIONS, rows), named])


def _version(visit: Visit, found: Table, commit: Commit) -> list[Content]:
    at = commit.position
    what = at.kind if at else commit.operation.lower()
    said = [what, "" if commit.changes_data else Text(" changed no row", "soft")]
    run = visit.run(found.pipeline, at.run if at else None)
    return [commit.version, visit.since(commit.at), said, at.batch if at else None, run]
