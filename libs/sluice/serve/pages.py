"""Pages of the server, for people: those of Airflow by the same builders, without Airflow.

A table's page also has a form, whose answer are the rows that the same request would get.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from itertools import islice
from json import loads

from sluice.delta.log.position import head
from sluice.errors import SluiceError, UsageError
from sluice.language.names import Row
from sluice.pages.elements import Chapter, Content, Field, Form, Listing, Page, Text, data
from sluice.read.changelog import Changelog
from sluice.report.health import chapter
from sluice.report.overview import overview, tables
from sluice.report.publish import report_folder
from sluice.report.table_page import page as explanation
from sluice.report.table_page import table as table_page
from sluice.report.visit import INDEX, Visit
from sluice.serve import states
from sluice.serve.answers import Answer, Format, Refused, mistakes
from sluice.serve.questions import (
    COLUMNS,
    CURSOR,
    FROM,
    KEY,
    LIMIT,
    ORDER,
    PARTITION,
    REVERSE,
    TO,
    WHERE,
    Question,
    Route,
    to_text,
)
from sluice.serve.reads import read_rows, reading_verbs

ASKED = (KEY, FROM, TO, WHERE, ORDER, REVERSE, LIMIT)
SHOWN = 12  # rows and changes


def pipelines(asked: Question) -> Page:
    """Return the page of one pipeline, or of all. Raises Refused if there is none."""
    project = asked.lake.project
    names = [asked.name] if asked.name else project.pipelines
    seen = [n for n in names if n in project.pipelines and asked.token.sees(n)]
    wrong = asked.graph.left_out
    if asked.name and not seen:
        if wrong and asked.name in asked.broken.values():
            raise wrong
        raise Refused(HTTPStatus.NOT_FOUND, f"there is no pipeline {asked.name!r}")
    shown = [(project.pipelines[n], tables(project, project.graph.pipeline(n))) for n in seen]
    return overview(visit(asked), shown, mistakes(wrong) if wrong else (), project.graph)


def table(asked: Question) -> Page:
    """Return a table's page, with a form and its rows, and its newest changes."""
    project, found = asked.lake.project, asked.table
    if not found.is_stored:
        raise Refused(HTTPStatus.NOT_FOUND, f"{found.id} is computed when it is read")
    page = table_page(visit(asked), project, found)
    at = head(asked.lake.uri(found))
    parts = [_form(asked), *_changes(asked)] if at is not None and at.is_filled else []
    return Page(page.title, page.heading, page.head, [parts, *page.sections], page.foot, page.path)


def _form(asked: Question) -> Chapter:
    is_timed = "window" in reading_verbs(asked)
    key = asked.lake.window(asked.table.id).key.names if is_timed else asked.table.named_key
    given = [*_texts(asked, "key"), *[""] * len(key)]
    fields = [Field("key", column, given[n], KEY.about) for n, column in enumerate(key)]
    fields += [Field(p.name, p.name, "".join(_texts(asked, p.name)), p.about) for p in ASKED[1:]]
    form = Form(f"/tables/{asked.table.id}", "Show rows", fields)
    if not asked.values:
        return Chapter("Rows", [form])
    try:
        found = read_rows(asked)
        rows = _explained(asked, list(islice(found.rows(), asked.limit)), found.schema.names)
    except (Refused, SluiceError) as error:
        return Chapter("Rows", [form, Text(error.message, "line wrong")])
    said = f"version {found.version}" if rows.rows else "There is no such row."
    shown: list[Content] = [Text(said, "line soft small"), rows]
    if found.cursor:
        hidden = [(p.name, text) for p in ASKED for text in _texts(asked, p.name)]
        fields = [Field(name, "", text, is_hidden=True) for name, text in hidden]
        cursor = Field("cursor", "", found.cursor, is_hidden=True)
        shown.append(Form(f"/tables/{asked.table.id}", "Next page", [*fields, cursor]))
    return Chapter("Rows", [form, *shown])


def _explained(asked: Question, rows: Sequence[Row], names: Sequence[str]) -> Listing:
    """Return rows, each with a link to its explanation if it shows a key that names it."""
    shown, opened = data(rows, names), asked.lake.table(asked.table.id)
    try:
        key = opened.row_key.names
    except UsageError:
        return shown
    if opened.current or not {*key} <= {*names}:
        return shown
    why = partial(visit(asked).why, asked.table.id)
    links = [Text("why", href=why([("key", to_text(row[name])) for name in key])) for row in rows]
    cells = [[link, *row] for link, row in zip(links, shown.rows, strict=True)]
    return Listing([("", ""), *shown.columns], cells)


def _texts(asked: Question, name: str) -> list[str]:
    value = asked.get(name)
    given = value if isinstance(value, list) else [] if value is None else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in given]


def _changes(asked: Question) -> list[Chapter]:
    """Return the last changes of the newest version that changed rows."""
    changelog = Changelog.open(asked.lake, asked.table.id)
    try:
        commits = changelog.commits()[-1:]
        rows = [r for c in commits for r in islice(changelog.rows(from_version=c.version), SHOWN)]
    except SluiceError as error:
        return chapter(Text("Newest changes", "wrong"), [error.message])
    return [Chapter("Newest changes", [data(rows, list(rows[0]))])] if rows else []


def row(asked: Question) -> Page:
    """Return the page of an explanation."""
    try:
        answer = loads(states.why(asked).body)  # type: ignore[arg-type]  # bytes
    except (Refused, SluiceError) as error:
        answer = {"trouble": error.message}
    return explanation(visit(asked), asked.table, answer)


def plan(asked: Question) -> Page:
    """Return the page of the next batches."""
    steps = loads(states.plan(asked).body)["steps"]  # type: ignore[arg-type]  # bytes
    seen = visit(asked)
    heads = [("Table", ""), ("Next", ""), ("Why", "text"), ("Engine", "soft"), ("Bytes", "number")]
    rows: list[list[Content]] = [
        [seen.table(one["table"]), one["next"], one["reason"], one["engine"], one["bytes"]]
        for one in steps
    ]
    path = seen.path("Plan")
    return Page("Plan · Sluice", "What the next batches read", (), [Listing(heads, rows)], "", path)


def visit(asked: Question) -> Visit:
    """Return a visit of these pages."""
    return Visit(
        "",
        None,
        environment=asked.lake.project.environment,
        reports=_reports(asked),
        now=datetime.now(UTC),
        sees=asked.token.sees,
        has_run=lambda *_: False,
    )


def _reports(asked: Question) -> set[str]:
    """Return the files of the quality report that the token may see."""
    known = {f"{name}.html" for name in asked.graph.tables}
    known |= {INDEX} if asked.token.pipelines is None else set()
    return known & {file.name for file in report_folder(asked.lake.project).glob("*.html")}


def report(asked: Question) -> Answer:
    """Return a file of the quality report."""
    if asked.name not in _reports(asked):
        raise Refused(HTTPStatus.NOT_FOUND, "there is no such report")
    return Answer((report_folder(asked.lake.project) / asked.name).read_bytes(), Format.HTML)


HTML = (Format.HTML,)
PAGES = (
    Route("/", "", pipelines, formats=HTML),
    Route("/pipelines/{table}", "", pipelines, formats=HTML),
    Route("/tables/{table}", "", table, (*ASKED, CURSOR, COLUMNS), HTML),
    Route("/tables/{table}/why", "", row, (KEY, PARTITION, *states.row_parameters()), HTML),
    Route("/plan", "", plan, formats=HTML),
    Route("/report/{table}", "", report, formats=HTML),
)
