"""Addresses of the server, what each answers, and their description as OpenAPI and as a page."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from sluice.extras import DISTRIBUTION
from sluice.pages import Chapter, Content, Listing, Page, Text, html
from sluice.serve import changes, reads, states
from sluice.serve import questions as ask
from sluice.serve.answers import CURSOR as NEXT
from sluice.serve.answers import VERSION as SHOWN
from sluice.serve.answers import Answer, Format, to_json
from sluice.serve.questions import FORMAT, UNREAD, Parameter, Question, Route

HTML = Format.HTML
ROWS = (Format.JSON, Format.NDJSON, Format.CSV, Format.ARROW)
TABLE = "/v1/tables/{table}"
TYPES = {str: "string", int: "integer", bool: "boolean"}
TEXT = {"type": "string"}
LAST_EVENT = "Last-Event-ID"
METRICS = "State of every table and of the server, in Prometheus' text format."
REFUSED = "The request can't be answered: `error` has `type`, `message` and `hint`."
HEALTH = "Whether the declarations are served as they are now."
ABOUT = (
    "Reads of the tables. A page of rows has a cursor, which continues at the same version. "
    "In JSON, decimals, times, dates and bytes (base64) are texts; Arrow keeps the types. "
    r"A key's value \N is null; a value that begins with a backslash is written with one more. "
    "There are also /metrics, /healthz and, for people, the pages from / on."
)
WHICH_ROW = (
    ask.KEY,
    ask.PARTITION,
    Parameter("rows", "Rows to show of each table.", int),
    ask.VERSION,
)
WHEN = Parameter("when", "Column whose last change is meant.")

ROUTES = (
    Route("/v1/tables", "All tables: kind, key, columns, version, freshness.", states.tables),
    Route(TABLE, "One table, with its inputs, expectations and definition.", states.table),
    Route(
        f"{TABLE}/rows",
        "Rows by key, by a range of keys or times, or all of them in order.",
        reads.rows,
        (
            ask.KEY,
            ask.FROM,
            ask.TO,
            Parameter("key_from", "First value of each key column.", many=True),
            Parameter("key_to", "Last value of each key column.", many=True),
            Parameter("overlapping", "Windows that overlap the times.", bool),
            ask.ORDER,
            Parameter("backward_iteration", "Let a range from late to early be reversed.", bool),
            ask.REVERSE,
            ask.WHERE,
            ask.COLUMNS,
            ask.LIMIT,
            ask.CURSOR,
            ask.VERSION,
            ask.AS_OF,
        ),
        ROWS,
    ),
    Route(
        f"{TABLE}/top",
        "Rankings: of one partition rank by rank, or of all partitions.",
        reads.top,
        (ask.PARTITION, ask.VERSION, ask.AS_OF),
        ROWS,
    ),
    Route(f"{TABLE}/count", "Number of rows.", reads.count, (ask.VERSION, ask.AS_OF)),
    Route(
        f"{TABLE}/at",
        "Version, columns and rows, now or at a time.",
        reads.at,
        (ask.VERSION, ask.AS_OF),
    ),
    Route(
        f"{TABLE}/changes",
        "Changelog: page by page, or as server-sent events that go on with new commits.",
        changes.changes,
        (
            Parameter("from_version", "First version.", int),
            Parameter("to_version", "Last version; not of events.", int),
            Parameter("run", "Only what this run changed."),
            ask.COLUMNS,
            ask.LIMIT,
            ask.CURSOR,
        ),
        (*ROWS, Format.EVENTS),
    ),
    Route(
        f"{TABLE}/why",
        "The commit that last changed a row, and the rows that it comes from.",
        states.why,
        (*WHICH_ROW, WHEN, *states.row_parameters()),
    ),
    Route(
        f"{TABLE}/why-not",
        "What keeps a row out of the table.",
        states.why_not,
        (*WHICH_ROW, *states.row_parameters()),
    ),
    Route(
        "/v1/plan",
        "What the next batches would read.",
        states.plan,
        (Parameter("table", "Only this table."),),
    ),
    Route("/v1/status", "State of every table: lag, failures, quarantine.", states.states),
)


def _parameters(route: Route) -> Iterator[dict[str, Any]]:
    if "{table}" in route.path:
        yield {"name": "table", "in": "path", "required": True, "schema": TEXT}
    for one in (*route.parameters, FORMAT):
        schema = {"type": TYPES[one.type]}
        shown = {"type": "array", "items": schema} if one.many else schema
        yield {"name": one.name, "in": "query", "description": one.about, "schema": shown}
    if Format.EVENTS in route.formats:
        about = "Place of the last event that was seen: go on behind it."
        yield {"name": LAST_EVENT, "in": "header", "description": about, "schema": TEXT}


def _response(schema: Any, *formats: Format, about: str = "OK") -> dict[str, Any]:
    """Return the description of a response in these formats; rows have headers, too."""
    content = {str(one): {"schema": schema} if one is Format.JSON else {} for one in formats}
    said = {"description": about, "content": content}
    if Format.ARROW not in formats:
        return said
    headers = {SHOWN: "Version of the table.", NEXT: "Cursor of the next page, if any."}
    shown = {name: {"description": what, "schema": TEXT} for name, what in headers.items()}
    return said | {"headers": shown}


def openapi(_: Question) -> Answer:
    """Return the description of all routes as OpenAPI 3.1."""
    from sluice.serve.shapes import describe_answers

    answers, named = describe_answers()
    refusal = _response(answers["refusal"], Format.JSON, about=REFUSED)
    health = {
        "200": _response(answers["healthz"], Format.JSON),
        "503": _response(answers["healthz"], Format.JSON, about=UNREAD),
    }
    paths: dict[str, Any] = {
        "/metrics": _operation(
            "metrics", METRICS, {"200": _response({}, Format.TEXT), "4XX": refusal}
        ),
        "/healthz": _operation("healthz", HEALTH, health),
    }
    for route in ROUTES:
        name = route.answer.__name__
        responses = {"200": _response(answers[name], *route.formats), "4XX": refusal}
        parameters = list(_parameters(route))
        paths[route.path] = _operation(name, route.about, responses, parameters=parameters)
    said = {
        "openapi": "3.1.0",
        "info": {"title": "Sluice", "version": version(DISTRIBUTION), "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": named,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }
    return Answer(to_json(said))


def _operation(name: str, about: str, responses: Any, **more: Any) -> dict[str, Any]:
    return {"get": {"summary": about, "operationId": name, "responses": responses, **more}}


def page(asked: Question) -> Answer:
    """Return the description of all routes as a page, without a script."""
    chapters = []
    for route in ROUTES:
        rows: list[list[Content]] = [
            [
                Text(p.name, "mono"),
                f"{TYPES[p.type]}{', repeatable' if p.many else ''}",
                p.about.replace("`", ""),
            ]
            for p in (*route.parameters, FORMAT)
        ]
        parts = [
            Text(route.about, "line"),
            Text(", ".join(route.formats), "line soft small"),
            Listing([("Parameter", ""), ("Type", "soft small"), ("", "wide")], rows, "stacked"),
        ]
        chapters.append(Chapter(Text(f"GET {route.path}", "mono"), parts))
    spec = Text("openapi.json", href="/v1/openapi.json")
    notice = Text(f"{UNREAD}." if asked.unread else "", "line wrong")
    foot: list[Content] = [notice, "The same for programs: ", spec]
    path = Text("Sluice", href="/")
    said = html(Page("Sluice", "Reads over HTTP", [ABOUT], chapters, foot, path))
    return Answer(said.encode(), HTML)


DESCRIPTIONS = (
    Route("/v1/openapi.json", "", openapi),
    Route("/v1/docs", "", page, formats=(HTML,)),
)
