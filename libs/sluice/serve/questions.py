r"""Questions: what a request may ask, and the values that it gives.

The parameters of a route are declared once. Requests are read by them, and OpenAPI describes them.
A key's value is a text, read by its column's type as on a command line. `\N` is null, and a text
that begins with a backslash is written with one more.
"""

import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from sluice.declare.project import PLACE, without_message
from sluice.declare.table import Graph, Table
from sluice.errors import ConfigError, SluiceError
from sluice.language.names import (
    ARRIVALS,
    FORGETTING,
    FORGOTTEN,
    MARK,
    QUARANTINE,
    internal,
    unknown,
)
from sluice.pages import Page
from sluice.read.key_order import KeyColumns
from sluice.serve.access import Token
from sluice.serve.answers import Answer, Format, Refused, mistakes, show, without_paths

if TYPE_CHECKING:
    from sluice.read.lake import Lake

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)
NULL = r"\N"
ELSEWHERE = "{} is left out until mistakes of pipelines that it reads are mended"
UNREAD = "the declarations can't be read as they are now, and those of before are served"
LONGEST = 2_000  # characters of a condition
WHOLE = re.compile(r"\d{1,18}", re.ASCII)


@dataclass(frozen=True)
class Limits:
    """Limits of the server: rows and bytes of a page, seconds of a request, streams at a time."""

    rows: int = 1_000_000
    bytes: int = 32_000_000
    seconds: float = 30
    streams: int = 100
    page: int = 1_000  # rows without `limit`


@dataclass(frozen=True)
class Parameter:
    """A parameter of requests; `many`: it may be given several times."""

    name: str
    about: str
    type: type = str
    many: bool = False

    def read(self, given: Sequence[str]) -> Any:
        """Return the value of the texts of a request. Raises Refused for others."""
        if self.many:
            return list(given)
        if len(given) > 1:
            raise refuse(f"parameter {self.name!r} is given {len(given)} times")
        (text,) = given
        if self.type is bool and text.lower() in ("true", "false", "1", "0", ""):
            return text.lower() in ("true", "1", "")
        if self.type is int and WHOLE.fullmatch(text):
            return int(text)
        if self.type is not str:
            kind = "true or false" if self.type is bool else "a whole number from 0 on"
            raise refuse(f"{self.name}={text}: {self.name!r} is {kind}")
        return text


FORMAT = Parameter("format", "Instead of `Accept`: json, ndjson, csv or arrow.")
VERSION = Parameter("version", "Version of the table; without it, the newest.", int)
AS_OF = Parameter("as_of", "Time whose newest common state of all tables is read.")
COLUMNS = Parameter("columns", "Only these columns, separated by commas.", many=True)
LIMIT = Parameter("limit", "Largest number of rows of a page.", int)
CURSOR = Parameter("cursor", "Cursor of the previous page: continue after it.")
KEY = Parameter("key", "Value of a key column, in the key's order.", many=True)
PARTITION = Parameter("partition", "COLUMN=VALUE of a partition.", many=True)
FROM = Parameter("from", "First key; of rows by key and time, the first time.", many=True)
TO = Parameter("to", "Last key; of rows by key and time, the last time.", many=True)
WHERE = Parameter("where", "Only rows that meet this condition, such as total > 10.")
ORDER = Parameter("order", "key, none, or time, for rows by key and time.")
REVERSE = Parameter("reverse", "true: last first.", bool)


@dataclass(frozen=True)
class Question:
    """A request that was admitted; `values` are those of its parameters.

    `name`: the table that its address names. `unread`: why the declarations can't be read as they
    are now; then the lake is that of before.
    """

    lake: "Lake"
    token: Token
    limits: Limits
    values: Mapping[str, Any]
    format: Format
    name: str = ""
    begun: float = field(default_factory=time.monotonic)
    unread: SluiceError | OSError | None = None

    @cached_property
    def graph(self) -> Graph:
        """Tables that the token may see."""
        every = self.lake.project.graph
        if self.token.pipelines is None:
            return every
        seen = {t: one for t, one in every.tables.items() if self.token.sees(one.pipeline)}
        return Graph(seen, self._mistakes(every), self.broken)

    @property
    def broken(self) -> dict[str, str]:
        """Pipelines that are left out, by their files; of those that the token may see."""
        every, is_whole = self.lake.project.graph.broken, self.token.pipelines is None
        return {f: name for f, name in every.items() if is_whole or self.token.sees(name)}

    def _mistakes(self, every: Graph) -> ConfigError | None:
        """Return the mistakes in files of left-out pipelines that a limited token may see."""
        if not self.broken or every.left_out is None:
            return None
        named = {*self.lake.project.pipelines, *every.broken.values()} - {""}
        is_whole = all(map(self.token.sees, named))
        places = [(PLACE.match(mistake), mistake) for mistake in every.left_out.mistakes]
        own = [
            mistake if is_whole else without_message(mistake)
            for place, mistake in places
            if place and place["file"] in self.broken
        ]
        names = ", ".join(sorted(self.broken.values()))
        hint = f"until this is fixed, these are left out: {names}"
        return ConfigError(own or [ELSEWHERE.format(names)], hint=hint)

    @property
    def mistakes(self) -> list[str]:
        """Mistakes of pipelines that are left out, as this client gets them."""
        return list(map(self.says, mistakes(self.graph.left_out) if self.graph.left_out else ()))

    @property
    def why_unread(self) -> list[str]:
        """Reasons why the declarations can't be read; the mistakes only if all may be seen."""
        if self.unread is None:
            return []
        error = self.unread
        said = mistakes(error) if isinstance(error, ConfigError) else [str(error)]
        return [UNREAD, *(map(self.says, said) if self.token.pipelines is None else ())]

    @cached_property
    def table(self) -> Table:
        """Table that is named, or whose internal table is. Raises UnknownTable; Refused if its
        rows would show who was forgotten: hashes of few possible values can be tried.
        """
        if self.suffix in (FORGOTTEN, FORGETTING):
            raise Refused(HTTPStatus.NOT_FOUND, f"{self.name} is not served")
        return self.graph.table(self.name.partition(MARK)[0] or self.name)

    @cached_property
    def address(self) -> str:
        """Name of the table as readers take it."""
        return internal(self.table.id, self.suffix) if self.is_internal else self.table.id

    @property
    def suffix(self) -> str:
        """Last part of an internal table's name, such as `quarantine`; of others nothing."""
        return self.name.partition(MARK)[2]

    def sees(self, table_id: str) -> bool:
        """True if the token may see the rows of a table, of which this is the id."""
        return self.token.sees(table_id.partition(".")[0])

    def says(self, text: str) -> str:
        """Return a message as this client gets it."""
        return show(self.lake.project, text)

    def hide(self, value: Any) -> Any:
        """Return what is known of tables without paths and values of variables; names stay."""
        match value:
            case str():
                return self.says(value) if " " in value else without_paths(value)
            case dict():
                return {key: self.hide(one) for key, one in value.items()}
            case list() | tuple():
                return [self.hide(one) for one in value]
        return value

    def hide_notes(self, rows: Rows) -> Rows:
        """Return rows of a table of notes without paths and values; of other tables as they are."""
        for name, shown in self.hidden.items():
            if (nth := rows.schema.get_field_index(name)) >= 0:
                column = rows.schema.field(nth)
                texts: list[str | None] = rows.column(nth).to_pylist()
                known = {text: text and shown(text) for text in {*texts}}
                found = pa.array([known[text] for text in texts], column.type)
                rows = rows.set_column(nth, column, found)
        return rows

    @cached_property
    def hidden(self) -> Mapping[str, Callable[[str], str]]:
        """Columns of the table that hold messages and files, and how these are shown."""
        file = self.lake.project.delivered
        if self.suffix == QUARANTINE:
            return {"reason": self.says, "file": file}
        return {"path": file} if self.suffix == ARRIVALS else {}

    @property
    def is_internal(self) -> bool:
        """True for a quarantine and the like."""
        return MARK in self.name

    @property
    def until(self) -> float:
        """Time by the clock at which a page ends, so that it still comes in time."""
        return self.begun + 0.8 * self.limits.seconds

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.until

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a parameter."""
        return self.values.get(name, default)

    @property
    def columns(self) -> list[str] | None:
        names = [n.strip() for text in self.get("columns", ()) for n in text.split(",")]
        return [name for name in names if name] or None

    @property
    def limit(self) -> int:
        """Rows of a page. Raises Refused for more than the server gives."""
        limit = int(self.get("limit", min(self.limits.page, self.limits.rows)))
        if limit > self.limits.rows:
            raise refuse(f"limit={limit}: a page has {self.limits.rows} rows at most", PAGES)
        return limit

    @property
    def bytes(self) -> int:
        """Bytes of a page in Arrow; as a text, it takes several times as many."""
        return self.limits.bytes if self.format is Format.ARROW else self.limits.bytes // 4

    @property
    def where(self) -> str | None:
        condition: str | None = self.get("where")
        if condition is not None and len(condition) > LONGEST:
            raise refuse(f"the condition has more than {LONGEST} characters")
        return condition

    @property
    def partition(self) -> dict[str, str | None]:
        """Values of a partition by their columns."""
        pairs = [text.partition("=") for text in self.get("partition", ())]
        if wrong := next((column for column, equals, _ in pairs if not equals), None):
            raise refuse(f"partition={wrong}: write partition=COLUMN=VALUE")
        found = {column: parse(value) for column, _, value in pairs}
        if len(found) < len(pairs):
            raise refuse("partition: a column is given twice", "give one value for each column")
        return found


Handler = Callable[[Question], Answer | Page]
PAGES = "ask page by page: each answer has the cursor of the next one"


@dataclass(frozen=True)
class Route:
    """One address of the server, what is answered there, and what may be asked."""

    path: str
    about: str
    answer: Handler
    parameters: tuple[Parameter, ...] = ()
    formats: tuple[Format, ...] = (Format.JSON,)

    def read(self, given: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """Return the values of a request's parameters. Raises Refused for unknown ones."""
        texts: dict[str, list[str]] = {}
        for name, text in given:
            texts.setdefault(name, []).append(text)
        known = {p.name: p for p in (*self.parameters, FORMAT)}
        for name in texts:
            if name not in known:
                raise refuse(unknown("parameter", name, known))
        return {name: known[name].read(every) for name, every in texts.items()}


def refuse(message: str, hint: str = "") -> Refused:
    """Return the error for a request that can't be read."""
    return Refused(HTTPStatus.BAD_REQUEST, message, hint)


def refuse_many(what: str) -> Refused:
    """Return the error for a request that comes while there are too many."""
    wait = {"Retry-After": "1"}
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, what, "ask again in a second", wait)


def took_long(limits: Limits) -> Refused:
    """Return the error for a request whose time is over."""
    what = f"the request took longer than {limits.seconds:g} s"
    hint = "ask for fewer rows or columns, or narrow the key, range or condition if it has one"
    return Refused(HTTPStatus.REQUEST_TIMEOUT, what, hint)


def parse_key(columns: KeyColumns, texts: Sequence[str] | None) -> tuple[Any, ...] | None:
    """Return a key from texts; None if nothing is given. Raises UsageError if it does not fit."""
    return columns.parse([parse(text) for text in texts or ()])


def parse(text: str) -> str | None:
    """Return a value; a text that begins with a backslash was written with one more."""
    return None if text == NULL else text.removeprefix("\\")


def to_text(value: Any) -> str:
    """Return the text that is read as a value."""
    match value:
        case None:
            return NULL
        case bool():
            return str(value).lower()
        case date():
            return value.isoformat()
        case bytes():
            return b64encode(value).decode()
    text = str(value)
    return f"\\{text}" if text.startswith("\\") else text
