"""Answers: rows as JSON, lines of JSON, CSV or Arrow, as the request's `Accept` prefers.

JSON keeps every value: a DECIMAL, a time, a date and bytes (in base64) are texts, as are NaN and
the infinities. Times are ISO 8601 in UTC. Arrow keeps the columns' types.

A refusal is JSON with `type`, `message` and `hint`. It names requests, where the readers name
commands, and never shows a path of this machine.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from http import HTTPStatus
from io import StringIO
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from sluice.declare.project import PLACE, Project
from sluice.errors import ConfigError, SluiceError
from sluice.language.names import Row
from sluice.read.keyed import Rows
from sluice.read.scan import Touched
from sluice.terminal.output import spell, write_csv

AT_ONCE = 1_000  # rows that are written at a time
VERSION, CURSOR = "Sluice-Version", "Sluice-Cursor"
END = b"\xff\xff\xff\xff\0\0\0\0"  # of an IPC stream
COMMAND = re.compile(r"sluice (get|read|range|changes|top|why|why-not) ([\w.]+)([^`]*)")
STATE = re.compile(r"sluice (status|plan)\b")
ABOVE = re.compile(r"^.*?/(?=(?:pipelines/)?[^/]*$)")  # what leads to a configuration's file
OPTION = re.compile(r"`sluice [^`]*`|--([a-z]+(?:-[a-z]+)*)(?: (?=[A-Z\d]))?")
Says = Callable[[str], str]  # how a message is shown to a client
ROWS = {"get": "rows", "read": "rows", "range": "rows"}
PATHS = re.compile(r"(?<![\w.`}])(?:[a-z][a-z0-9+.-]*:/)?/[^\s'\",;`)]+")


class Format(StrEnum):
    """Media types of answers; the first one is that of a request without a preference."""

    JSON = "application/json"
    NDJSON = "application/x-ndjson"
    CSV = "text/csv"
    ARROW = "application/vnd.apache.arrow.stream"
    EVENTS = "text/event-stream"
    HTML = "text/html"
    TEXT = "text/plain"


class Refused(Exception):
    """A request that is not answered: its status, the reason, and what to do.

    `type`: the name of the readers' error, if it is theirs.
    """

    def __init__(
        self,
        status: int,
        message: str,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
        type_: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.hint = int(status), message, hint
        self.headers, self.type = headers or {}, type_

    @classmethod
    def of(cls, status: int, error: SluiceError, hint: str | None = None) -> "Refused":
        """Return the refusal of an error of the readers."""
        hint = error.hint if hint is None else hint
        message = "\n".join(mistakes(error)) if isinstance(error, ConfigError) else error.message
        return cls(status, message, hint, type_=type(error).__name__)

    def as_json(self, says: Says) -> dict[str, Any]:
        """Return what is said of it, as messages are shown to clients."""
        said = {"message": in_requests(self.message), "hint": in_requests(self.hint)}
        return {"type": self.type, **{name: says(text) for name, text in said.items()}}

    def in_words(self, says: Says) -> str:
        """Return the message and the hint as one text."""
        said = self.as_json(says)
        return "; ".join(filter(None, (said["message"], said["hint"])))

    def answer(self, says: Says) -> "Answer":
        """Return the refusal of a request as JSON."""
        body = to_json({"error": self.as_json(says)})
        return Answer(body, Format.JSON, self.headers, self.status)


@dataclass(frozen=True)
class Answer:
    """Status, headers and body of a response; `size`: bytes from which a body in parts is made."""

    body: bytes | Iterator[bytes | memoryview]
    media: str = Format.JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = HTTPStatus.OK
    size: int = 0


@dataclass(frozen=True)
class Page:
    """Rows of one version of a table, and the cursor of the next page if there may be one.

    `found`: the rows as values, where they were read so.
    """

    table: str
    version: int
    schema: pa.Schema
    batches: tuple[pa.RecordBatch, ...] = ()
    cursor: str | None = None
    found: tuple[Row, ...] | None = None

    def rows(self) -> Iterable[Row]:
        """Return the rows as values."""
        if self.found is not None:
            return self.found
        tables = iter([pa.Table.from_batches(self.batches, self.schema)])
        return Rows(tables, self.schema, self.version, Touched())

    def answer(self, format_: Format) -> Answer:
        """Return the page in that format; one of many rows is written while it is sent."""
        headers = {VERSION: str(self.version)} | ({CURSOR: self.cursor} if self.cursor else {})
        if format_ is Format.ARROW:
            return self._in_arrow(headers)
        parts = self._texts(format_)
        rows = sum(batch.num_rows for batch in self.batches) + len(self.found or ())
        body, size = parts if rows > AT_ONCE else b"".join(parts), _size(self.batches)
        return Answer(body, format_, headers, size=size)

    def _texts(self, format_: Format) -> Iterator[bytes]:
        """Yield JSON, lines of JSON or CSV, some rows at a time."""
        rows, names = iter(self.rows()), self.schema.names
        head, between, end = b"", b"", b""
        if format_ is Format.CSV:
            head = _csv((), names)
        elif format_ is Format.JSON:
            about = {"table": self.table, "version": self.version}
            head, between = to_json(about)[:-1] + b', "rows": [', b", "
            end = b'], "cursor": ' + to_json(self.cursor) + b"}"
        yield head
        for number, some in enumerate(iter(lambda: list(islice(rows, AT_ONCE)), [])):
            yield between if number else b""
            match format_:
                case Format.NDJSON:
                    yield b"".join(to_json(row) + b"\n" for row in some)
                case Format.CSV:
                    yield _csv(some, names)[len(head) :]
                case _:
                    yield to_json(some)[1:-1]
        yield end

    def _in_arrow(self, headers: Mapping[str, str]) -> Answer:
        """Return an IPC stream: its schema, each batch, and its end."""
        batches = self.batches
        if self.found is not None:
            batches = tuple(pa.Table.from_pylist(list(self.found), self.schema).to_batches())
        head = self.schema.serialize()
        size = head.size + sum(map(pa.ipc.get_record_batch_size, batches)) + len(END)
        parts = chain([head], (batch.serialize() for batch in batches), [pa.py_buffer(END)])
        length = {"Content-Length": str(size)}
        of = {**headers, **length}
        return Answer(map(memoryview, parts), Format.ARROW, of, size=_size(batches))


def _size(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(batch.nbytes for batch in batches)


def _csv(rows: Iterable[Row], names: Sequence[str]) -> bytes:
    text = StringIO()
    write_csv(iter(rows), names, text)
    return text.getvalue().encode()


@lru_cache(maxsize=256)
def negotiate(accept: str, offered: tuple[Format, ...]) -> Format:
    """Return the offered format that a request prefers. Raises Refused if it takes none."""
    best, chosen = 0.0, None
    for part in (accept or "*/*").split(","):
        media, *parameters = (text.strip().lower() for text in part.split(";"))
        weight = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        quality = float(weight) if re.fullmatch(r"[01](\.\d{0,3})?", weight) else 0.0
        kind = media.removesuffix("*")
        fits = [f for f in offered if media in (f, "*/*") or (media != kind and f.startswith(kind))]
        if fits and quality > best:
            best, chosen = quality, fits[0]
    if chosen is None:
        raise Refused(
            HTTPStatus.NOT_ACCEPTABLE, "none of the accepted formats is offered", ", ".join(offered)
        )
    return chosen


def to_json(value: Any) -> bytes:
    """Return a value as JSON that keeps its values."""
    try:
        text = _encode(value)
    except (TypeError, ValueError):  # keys that are no texts, or NaN
        text = json.dumps(_plain(value), ensure_ascii=False, default=_text)
    return text.encode(errors="backslashreplace")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k if isinstance(k, str) else str(_text(k)): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and value - value != 0:
        return spell(value)
    return value


def _text(value: Any) -> Any:
    """Return the JSON of a value that JSON itself does not know."""
    if isinstance(value, datetime):
        utc = value.astimezone(UTC) if value.tzinfo else value
        return utc.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_text).encode


def in_requests(text: str) -> str:
    """Return a message with requests in place of commands that read, and of their options.

    Commands that write stay as they are, with their options.
    """
    found = COMMAND.sub(_request, STATE.sub(r"/v1/\1", text))
    return OPTION.sub(_parameter, found)


def _parameter(of: re.Match[str]) -> str:
    return of[1].replace("-", "_") + "=" * of[0].endswith(" ") if of[1] else of[0]


def _request(of: re.Match[str]) -> str:
    verb, table, rest = of.groups()
    words, query = iter(rest.split()), list[str]()
    for word in words:
        name = word.removeprefix("--")
        query.append(f"key={word}" if name == word else f"{name}={next(words, '...')}")
    path = f"/v1/tables/{table}/{ROWS.get(verb, verb)}"
    return f"{path}?{'&'.join(query)}" if query else path


def mistakes(error: ConfigError) -> list[str]:
    """Return mistakes with their files as the folder of the configuration has them."""
    return [
        PLACE.sub(lambda of: of[0].replace(of["file"], ABOVE.sub("", of["file"])), one)
        for one in error.mistakes
    ]


def without_paths(text: str, given: str = "") -> str:
    """Return a message without places of this machine or its stores, but those in `given`."""
    return PATHS.sub(lambda of: of[0] if of[0] in given else "<path>", text)


def show(project: Project, text: str, given: str = "") -> str:
    """Return a message without places, and without values of variables, but those in `given`."""
    return without_paths(project.hide(text, given), given)
