"""Pages of the server, for people: those of Airflow by the same builders, without Airflow.

A table's page also has a form, whose answer are the rows that the same request would get. A
request of a browser that is refused ends in a page, too; beside the form, if it is of the form.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from itertools import islice, zip_longest
from json import loads

from sluice.delta.log.files import feed_size
from sluice.delta.log.position import head
from sluice.errors import HistoryLost, SluiceError, UsageError
from sluice.language.names import Row
from sluice.pages import Chapter, Content, Field, Form, Listing, Page, Text, data
from sluice.read.changelog import Changelog
from sluice.read.keyed import Rows
from sluice.read.scan import Touched
from sluice.report import INDEX, Visit
from sluice.report.health import chapter
from sluice.report.pages import overview, tables
from sluice.report.pages import page as explanation
from sluice.report.pages import table as table_page
from sluice.report.publish import report_folder
from sluice.serve import questions as ask
from sluice.serve import states
from sluice.serve.answers import Answer, Format, Refused, Says, show
from sluice.serve.questions import UNREAD, Question, Route, refuse, to_text
from sluice.serve.reads import KEYS, NONE, TIMES, read_rows, reading_verbs

ASKED = (ask.KEY, ask.FROM, ask.TO, ask.WHERE, ask.ORDER, ask.REVERSE, ask.LIMIT)
BATCHES, SHOWN = 3, 12  # whose changes are shown, and how many of each
LARGEST = 8_000_000  # bytes of files of a version's changes that a page reads
FIRST = 50  # rows that a form asks for before it is filled in
TEXTS = {one.name: replace(one, type=str, many=True) for one in (*ASKED, ask.CURSOR, ask.COLUMNS)}
HOW = Text(
    r"An empty field is not asked for. In a key, \ is the empty text, and \N is null.",
    "line soft small",
)
FOOT = '<footer class="soft small">'  # of a page that is written already
MANY = "Version {} changed too many rows to show here. Read them from /v1/tables/{}/changes."
GONE = "Those so far are gone: upkeep and `forget` remove what no view needs any more."


def pipelines(asked: Question) -> Page:
    """Return the page of one pipeline, or of all. Raises Refused if there is none."""
    project = asked.lake.project
    names = [asked.name] if asked.name else project.pipelines
    seen = [n for n in names if n in project.pipelines and asked.token.sees(n)]
    if asked.name and not seen:
        if asked.graph.left_out and asked.name in asked.broken.values():
            raise asked.graph.left_out
        raise Refused(HTTPStatus.NOT_FOUND, f"there is no pipeline {asked.name!r}")
    shown = [(project.pipelines[n], tables(project, project.graph.pipeline(n))) for n in seen]
    return overview(visit(asked), shown, [*asked.why_unread, *asked.mistakes], project.graph)


def table(asked: Question) -> Page:
    """Return a table's page, with a form and its rows, and its newest changes."""
    project, found = asked.lake.project, asked.table
    page, parts = table_page(visit(asked), project, found), list[Chapter]()
    if not found.is_stored:
        parts = [_rows(asked)]
    with suppress(HistoryLost):  # the page says so
        if found.is_stored and (at := head(asked.lake.uri(found))) and at.is_filled:
            parts = [_rows(asked), *_changes(asked)]
    return Page(page.title, page.heading, page.head, [parts, *page.sections], page.foot, page.path)


def _rows(asked: Question) -> Chapter:
    """Return a form, with the rows that its fields ask for or what is wrong with them."""
    every = {name: _without_last(asked.get(name, ())) for name in TEXTS}
    given = {name: texts for name, texts in every.items() if texts}
    address, fields = f"/tables/{asked.table.id}", list(_fields(asked, given))
    parts: list[Content] = [Form(address, "Show rows", fields), HOW]
    if not given:
        return Chapter("Rows", parts)
    pairs = [(name, text) for name, texts in given.items() for text in texts]
    try:
        _check_filled(given, fields)
        question = replace(asked, values=READ.read(pairs))
        found = read_rows(question)
        rows = _explained(asked, list(islice(found.rows(), question.limit)), found.schema.names)
    except (Refused, SluiceError) as error:
        said = _say(asked, error, " ".join(text for _, text in pairs))
        return Chapter("Rows", [*parts, Text(said, "line wrong")])
    said = f"version {found.version}" if rows.rows else "There is no such row."
    parts += [Text(said, "line soft small"), rows]
    if found.cursor:
        again = [
            *(pair for pair in pairs if pair[0] != ask.CURSOR.name),
            (ask.CURSOR.name, found.cursor),
        ]
        hidden = [Field(name, "", text, is_hidden=True) for name, text in again]
        parts.append(Form(address, "Next page", hidden))
    return Chapter("Rows", parts)


def _without_last(texts: Sequence[str]) -> list[str]:
    """Return the texts of fields up to the last that is filled in."""
    filled = [n for n, text in enumerate(texts, 1) if text]
    return list(texts[: max(filled, default=0)])


def _check_filled(given: Mapping[str, Sequence[str]], fields: Sequence[Field]) -> None:
    """Raise Refused for an empty field of a key or a bound before a filled one."""
    for name in (ask.KEY.name, ask.FROM.name, ask.TO.name):
        labels = [field.label for field in fields if field.name == name]
        texts = zip(labels, given.get(name, ()), strict=False)
        if empty := [label for label, text in texts if not text]:
            what = f"{labels[len(given[name]) - 1]!r} is asked for without {', '.join(empty)}"
            raise refuse(f"{what}: fill in the columns before it", r"\ is the empty text")


def _fields(asked: Question, given: Mapping[str, Sequence[str]]) -> Iterator[Field]:
    """Yield the fields of a form, as they were filled in: of a key, one for each column."""
    is_timed, table = "window" in reading_verbs(asked), asked.lake.table(asked.table.id)
    key = asked.lake.window(asked.table.id).key.names if is_timed else table.key.names
    bounds = ("",) if is_timed else key
    columns = {ask.KEY.name: key, ask.FROM.name: bounds, ask.TO.name: bounds}
    choices = {
        ask.ORDER.name: ("", KEYS, NONE, *[TIMES] * is_timed),
        ask.REVERSE.name: ("", "true"),
    }
    filled = given or {ask.LIMIT.name: [str(FIRST)]}
    for one in ASKED:
        of, texts = columns.get(one.name, ("",)), filled.get(one.name, ())
        for column, text in zip_longest(of, texts, fillvalue=""):
            label = column if one is ask.KEY and column else f"{one.name} {column}".rstrip()
            is_true = one is ask.REVERSE and text.lower() in ("true", "1")
            value = "true" if is_true else text
            yield Field(one.name, label, value, one.about, choices=choices.get(one.name, ()))


def _say(asked: Question, error: Refused | SluiceError, given: str = "") -> str:
    """Return what is wrong with what is given, and what to do."""
    refused = Refused.of(HTTPStatus.BAD_REQUEST, error) if isinstance(error, SluiceError) else error
    return refused.in_words(partial(show, asked.lake.project, given=given))


def refusal(refused: Refused, says: Says) -> Page:
    """Return the page of a request that is not answered."""
    path, said = Text("Sluice", href="/"), Text(refused.in_words(says), "line wrong")
    return Page("Sluice", "It can't be shown", [said], (), "", path)


def _explained(asked: Question, rows: Sequence[Row], names: Sequence[str]) -> Listing:
    """Return rows, each with a link to its explanation if it shows a key that names it."""
    shown, opened = data(rows, names), asked.lake.table(asked.table.id)
    if not asked.table.is_stored:
        return shown
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


def _changes(asked: Question) -> list[Chapter]:
    """Return the first changes of the newest versions that changed rows, if they are kept."""
    changelog, rows = Changelog.open(asked.lake, asked.table.id), list[Row]()
    schema, notes = changelog.schema(), list[Content]()
    try:
        for version in (c.version for c in changelog.commits()[: -BATCHES - 1 : -1]):
            if feed_size(changelog.snapshot.uri, version - 1, version).bytes > LARGEST:
                notes.append(Text(MANY.format(version, asked.address), "line soft small"))
                continue
            first = changelog.ordered(version, LARGEST).rows(0, SHOWN)
            feed = iter([first.select(schema.names)])
            rows += islice(Rows(feed, schema, version, Touched()), SHOWN)
    except HistoryLost:  # files are deleted in order: there are no older ones
        if not rows:
            return chapter("Newest changes", [*notes, Text(GONE, "line soft small")])
    except SluiceError as error:
        return chapter(Text("Newest changes", "wrong"), [_say(asked, error)])
    shown = [*notes, data(rows, list(rows[0]))] if rows else notes
    return [Chapter("Newest changes", shown)] if shown else []


def row(asked: Question) -> Page:
    """Return the page of an explanation."""
    try:
        answer = loads(states.why(asked).body)  # type: ignore[arg-type]  # bytes
    except (Refused, SluiceError) as error:
        answer = {"trouble": _say(asked, error)}
    return explanation(visit(asked), asked.table, answer)


def plan(asked: Question) -> Page:
    """Return the page of the next batches."""
    steps = loads(states.plan(asked).body)["steps"]  # type: ignore[arg-type]  # bytes
    seen = visit(asked)
    heads = [("Table", ""), ("Next", "nowrap"), ("Why", "wide")]
    heads += [("Engine", "soft"), ("Bytes", "number")]
    rows: list[list[Content]] = [
        [seen.table(one["table"]), one["next"], one["reason"], one["engine"], one["bytes"] or ""]
        for one in steps
    ]
    listed, path = Listing(heads, rows, "stacked"), seen.path("Plan")
    return Page("Plan · Sluice", "What the next batches read", (), [listed], seen.foot, path)


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
        says=asked.says,
        notice=UNREAD if asked.unread else "",
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
    written = (report_folder(asked.lake.project) / asked.name).read_bytes()
    if asked.unread:
        said = f'{FOOT}<span class="line wrong">{UNREAD}.</span>'
        written = written.replace(FOOT.encode(), said.encode(), 1)
    return Answer(written, Format.HTML)


HTML = (Format.HTML,)
READ = Route("", "", table, (*ASKED, ask.CURSOR, ask.COLUMNS))
PAGES = (
    Route("/", "", pipelines, formats=HTML),
    Route("/pipelines/{table}", "", pipelines, formats=HTML),
    Route("/tables/{table}", "", table, tuple(TEXTS.values()), HTML),
    Route("/tables/{table}/why", "", row, (ask.KEY, ask.PARTITION, *states.row_parameters()), HTML),
    Route("/plan", "", plan, formats=HTML),
    Route("/report/{table}", "", report, formats=HTML),
)
