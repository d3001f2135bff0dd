"""The client of a server: `sluice.connect(url)` offers the reads of `sluice.open` from anywhere.

Rows come as Arrow, page by page as they are taken, and have the values that `sluice.open` gives. A
handle stays at the version at which it was opened. Errors are those of `sluice.open`, which the
server names; what it alone refuses is a UsageError, or Retryable where a later try can help. A
failure that the server did not foresee is a SluiceError.
"""

import http.client
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import chain, groupby
from threading import local
from typing import Any, ClassVar
from urllib.parse import quote, urlencode, urlsplit

import pyarrow as pa

from sluice.declare.table import UnknownTable
from sluice.errors import ConfigError, HistoryLost, Retryable, SluiceError, UsageError
from sluice.language.interval import parse_time
from sluice.language.names import RESERVED_PREFIX, Row
from sluice.read.key_order import Key, KeyColumns
from sluice.read.keyed import Rows, check_limit
from sluice.read.scan import Touched
from sluice.read.snapshot import NotBuilt, SnapshotExpired
from sluice.read.values import check, check_columns, type_name, values_of_columns
from sluice.serve.questions import to_text

PAGE = 100_000  # rows that are asked for at a time
LONGEST = 60_000  # characters of an address; a server that limits them more says so
SECONDS = 120
SENT = re.compile(r"[^\x00-\x1f\x7f\u0100-\U0010ffff]*")  # what a header takes
PLACE = f"{RESERVED_PREFIX}_cursor"  # of a change that is followed
TOKEN = "SLUICE_TOKEN"  # the variable that has it
ARROW, EVENTS = "application/vnd.apache.arrow.stream", "text/event-stream"
TYPES = (UnknownTable, NotBuilt, SnapshotExpired, ConfigError, HistoryLost, UsageError, Retryable)
STATUSES: Mapping[int, type[SluiceError]] = {410: HistoryLost, 429: Retryable, 500: SluiceError}
ADDRESSED = re.compile(r"[^/\ud800-\udfff]+")  # names that an address can have
SCALARS = {  # types of keys, by their names
    type_name(kind): kind
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.bool_(), pa.string(), pa.binary(), pa.date32()),
        *(pa.timestamp("us", "UTC"), pa.timestamp("us")),
    )
}
Query = Sequence[tuple[str, Any]]


@dataclass(frozen=True)
class Remote:
    """A lake behind a server: the same reads as of a lake that is opened here.

    `moment`: the time as of which it is read.
    """

    url: str
    token: str = field(default_factory=lambda: os.environ.get(TOKEN, ""), repr=False)
    moment: str | None = None
    _known: local = field(default_factory=local, repr=False, compare=False)

    def at(self, moment: str | datetime) -> "Remote":
        """Return the lake as of a moment. Raises IntervalError for what is no time."""
        parse_time(moment)
        return Remote(self.url, self.token, to_text(moment))

    def tables(self) -> list[dict[str, Any]]:
        """Return every table with its kind, columns, version and freshness."""
        found: list[dict[str, Any]] = self.ask("/v1/tables")["tables"]
        return found

    def table(
        self, name: str, *, version: int | None = None, backward_iteration: bool = False
    ) -> "RemoteTable":
        """Return any table as a key-value store, at its newest version or another."""
        about = self.ask(f"{_path(name)}/at", self.pinned(version))
        return RemoteTable(self, name, about, backward_iteration)

    def window(self, name: str, *, version: int | None = None) -> "RemoteStore":
        """Return a table of rows by key and time, to be read by both."""
        store = RemoteStore(self, name, self.ask(f"{_path(name)}/at", self.pinned(version)))
        store.fetch(limit=0).to_arrow()  # or it is refused
        return store

    def top(
        self, name: str, partition: Mapping[str, Any] | None = None, *, version: int | None = None
    ) -> dict[Any, Any]:
        """Return the map rank -> row of one partition, or partition -> rank -> row of several."""
        return self.rank(name, partition or {}, self.pinned(version))

    def ranking(self, name: str, *, version: int | None = None) -> "RemoteRanking":
        """Return a table of rankings."""
        about = self.ask(f"{_path(name)}/at", self.pinned(version))
        if about["partition"] is None:
            self.page(f"{_path(name)}/top", ())  # which is refused
        return RemoteRanking(self, name, about)

    def rank(self, name: str, partition: Mapping[str, Any], pinned: Query) -> dict[Any, Any]:
        """Return the rankings of a version."""
        pairs = [("partition", f"{c}={to_text(v)}") for c, v in partition.items()]
        table, _ = self.page(f"{_path(name)}/top", [*pairs, *pinned])
        shape = json.loads(table.schema.metadata[b"sluice"])
        names, rank = shape["partition"], shape["rank"]
        for column, value in partition.items():
            check(value, table.schema.field(column).type, column)
        found: dict[Any, Any] = {}
        rows = Rows(iter([table]), table.schema.remove_metadata(), 0, Touched())
        for key, ranked in groupby(rows, lambda row: values_of_columns(row, names)):
            ranks: dict[int, Any] = {}
            for row in ranked:
                number = row[rank] if shape["is_shown"] else row.pop(rank)
                if shape["has_ties"]:
                    ranks.setdefault(number, []).append(row)
                else:
                    ranks[number] = row
            found[key[0] if len(key) == 1 else key] = ranks
        return next(iter(found.values()), {}) if {*partition} == {*names} else found

    def why(self, name: str, /, *key: Any, **named: Any) -> dict[str, Any] | None:
        """Return why a row is as it is, as `sluice why --json` does; None if it never existed."""
        return self._explain(name, "why", key, named)

    def why_not(self, name: str, /, *key: Any, **named: Any) -> dict[str, Any] | None:
        """Return why a row is missing, as `sluice why-not --json` does; None if it exists."""
        return self._explain(name, "why-not", key, named)

    def follow(self, name: str, *, after: str | None = None, **options: Any) -> Iterator[Row]:
        """Yield a table's changes as they are committed, without end.

        Each has its place as `_sluice_cursor`, a name that no column has. `after`: the place of
        the last change that was seen. A lost connection is made again.
        """
        every = {n: v if isinstance(v, list | tuple) else [v] for n, v in options.items()}
        query = [(n, to_text(v)) for n, values in every.items() for v in values if v is not None]
        is_heard, alone = False, replace(self, _known=local())  # a stream holds its connection
        while True:
            try:
                for id_, kind, data in alone.events(f"{_path(name)}/changes", query, after):
                    is_heard, after = True, id_ or after
                    if kind == "error":
                        raise _error(data["status"], data["error"])
                    if kind == "change":
                        yield {PLACE: after, **data}
            except Retryable:
                if not is_heard:
                    raise
                time.sleep(1)

    def ask(self, path: str, query: Query = ()) -> Any:
        """Return the answer to a request in JSON."""
        return json.loads(self._get(path, query, "application/json")[0])

    def page(self, path: str, query: Query) -> tuple[pa.Table, str | None]:
        """Return rows of one answer, and the cursor of the next."""
        body, cursor = self._get(path, query, ARROW)
        return pa.ipc.open_stream(body).read_all(), cursor

    def pinned(self, version: int | None) -> list[tuple[str, Any]]:
        """Return the parameters that choose a version."""
        if version is not None:
            return [("version", version)]
        return [("as_of", self.moment)] if self.moment is not None else []

    def _explain(
        self, name: str, how: str, key: tuple[Any, ...], named: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        apart = {"partition", "rank", "time", "when", "version"}
        columns = {n: v for n, v in named.items() if n not in apart}
        if columns:
            key = self.table(name).key.read_values(key, columns)
        query = [("key", to_text(value)) for value in key]
        query += [("partition", f"{c}={to_text(v)}") for c, v in named.get("partition", {}).items()]
        single = apart - {"partition"}
        query += [(n, to_text(v)) for n, v in named.items() if n in single and v is not None]
        if self.moment is not None and named.get("version") is None:
            then = self.ask(f"{_path(name)}/at", self.pinned(None))
            query += [("version", then["version"])]
        try:
            found: dict[str, Any] = self.ask(f"{_path(name)}/{how}", query)
        except NoSuchRow:
            return None
        return found

    @contextmanager
    def _response(
        self, path: str, query: Query, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        """Give the response to a request, over this thread's connection; close one that is lost."""
        try:
            parts = urlsplit(self.url)
            host = parts.hostname if parts.scheme in ("http", "https") and parts.port != 0 else None
        except ValueError:  # of a port
            host = None
        if not host:
            raise UsageError(f"{self.url!r} is no address of a server", hint="http://HOST:PORT")
        if not SENT.fullmatch(token := self.token.strip()):
            raise UsageError(
                "the token can't be sent", hint="a token is one line, of a tokens file"
            )
        if not hasattr(self._known, "connection"):
            is_safe = parts.scheme == "https"
            make = http.client.HTTPSConnection if is_safe else http.client.HTTPConnection
            self._known.connection = make(host, parts.port, timeout=SECONDS)
        connection = self._known.connection
        login = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            address = f"{parts.path.rstrip('/')}{path}?{urlencode(query)}"
        except UnicodeEncodeError as error:
            raise UsageError(f"{error.object!r} is no text of UTF-8") from None
        if len(address) > LONGEST:
            what = f"the request has {len(address):,} characters, more than {LONGEST:,}"
            raise UsageError(what, hint="shorten its key, condition or columns")
        try:
            connection.request("GET", address, headers={**headers, **login})
            response = connection.getresponse()
            if response.status != 200:
                raise _error(response.status, _refusal(response.status, response.read()))
            yield response
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            hint = "start it with `sluice serve`"
            raise Lost(f"{self.url} does not answer: {error}", hint=hint) from error
        except GeneratorExit:
            connection.close()
            raise

    def _get(self, path: str, query: Query, accept: str) -> tuple[bytes, str | None]:
        """Return an answer, and the next page's cursor. A lost connection is made once again."""
        for is_last in (False, True):
            try:
                with self._response(path, query, {"Accept": accept}) as response:
                    return response.read(), response.headers.get("Sluice-Cursor")
            except Lost:
                if is_last:
                    raise
        raise AssertionError

    def events(
        self, path: str, query: Query, after: str | None
    ) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield id, kind and data of each event of one response; first that it has begun."""
        last = {} if after is None else {"Last-Event-ID": after}
        with self._response(path, query, {"Accept": EVENTS, **last}) as response:
            yield "", "begin", {}
            fields: dict[str, str] = {}
            while line := response.readline():
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif fields:
                    data = json.loads(fields.get("data", "{}"))
                    yield fields.get("id", ""), fields.get("event", ""), data
                    fields = {}
            raise ConnectionError("the stream has ended")


class Lost(Retryable):
    """A server that does not answer, or broke off."""


class NoSuchRow(UsageError):
    """A row that a table never had, or one that it has: there is nothing to explain."""


class RemoteRows(Rows):
    """Rows of a read, fetched page by page as they are taken."""

    def __init__(self, of: "Handle", query: Query, limit: int | None, after: str | None) -> None:
        self._of, self._query, self._limit = of, query, limit
        self._begun = (0, after)  # rows before this page, and its cursor
        self._next = after
        self._ended = self._taken = 0
        pages = self._pages()
        first = next(pages)
        super().__init__(chain([first], pages), first.schema, of.version, Touched())

    def __next__(self) -> Row:
        row = super().__next__()
        self._taken += 1
        return row

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows not yet taken, as Arrow record batches."""
        for batch in super().batches():
            self._taken += batch.num_rows
            yield batch

    @property
    def cursor(self) -> str | None:
        """Cursor after the last row taken; None if nothing was taken."""
        if self._taken == self._begun[0]:
            return self._begun[1]
        if self._taken == self._ended and self._next is not None:
            return self._next
        return self._ask(self._taken - self._begun[0], self._begun[1])[1]

    def _pages(self) -> Iterator[pa.Table]:
        most = min(PAGE, self._of.about["page"])
        while True:
            size = most if self._limit is None else min(most, self._limit - self._ended)
            before = self._next
            page, self._next = self._ask(size, before)
            self._begun, self._ended = (self._ended, before), self._ended + page.num_rows
            yield page
            if self._next is None or self._ended == self._limit:
                return

    def _ask(self, size: int, after: str | None) -> tuple[pa.Table, str | None]:
        cursor = [] if after is None else [("cursor", after)]
        query = [*self._query, ("limit", size), *cursor]
        return self._of.lake.page(f"{_path(self._of.name)}/rows", query)


@dataclass(frozen=True)
class Handle:
    """One version of a table behind a server; `about`: what the server says of it."""

    lake: Remote
    name: str
    about: Mapping[str, Any]

    ORDER: ClassVar[str]
    KEY: ClassVar[str] = "key"

    @property
    def version(self) -> int:
        return int(self.about["version"])

    @property
    def key(self) -> KeyColumns:
        """Key columns that a reader can name; of rows by key and time, without the time."""
        names, types = self.about[self.KEY], self.about["columns"]
        if not {types[name] for name in names} <= SCALARS.keys():
            return KeyColumns.of(self.name, names, self.schema)
        return KeyColumns(self.name, tuple(names), tuple(SCALARS[types[name]] for name in names))

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of the visible columns."""
        return self._rows([("order", "none")], limit=0).schema

    def to_arrow(self) -> pa.Table:
        """Return every row, in this handle's order, as an Arrow table."""
        return self.all().to_arrow()

    def all(self, **how: Any) -> Rows:
        """Return every row, in this handle's order."""
        return self._rows([("order", self.ORDER)], **how)

    def _rows(
        self,
        query: Query,
        *,
        limit: int | None = None,
        columns: Iterable[str] | None = None,
        after: str | None = None,
        **how: Any,
    ) -> RemoteRows:
        every = list(self.about["columns"])
        names = () if columns is None else check_columns(self.name, columns, every)
        given = [(n, to_text(v)) for n, v in how.items() if v is not None and v is not False]
        chosen = [("columns", name) for name in names]
        whole = [*query, *given, *chosen, *self._version()]
        return RemoteRows(self, whole, check_limit(limit), after)

    def _texts(self, name: str, key: Key) -> list[tuple[str, str]]:
        """Return the parameters of a key or a bound. Raises UsageError if it does not fit."""
        if key is None:
            return []
        if self.key.names:
            self.key.check_key(key)
        return [(name, to_text(v)) for v in (key if isinstance(key, tuple | list) else (key,))]

    def _version(self) -> list[tuple[str, Any]]:
        return [("version", self.version)] if self.about["is_stored"] else self.lake.pinned(None)


@dataclass(frozen=True)
class RemoteTable(Handle):
    """A table as a key-value store."""

    backward_iteration: bool = False

    ORDER = "key"

    @property
    def count(self) -> int:
        return int(self.about["rows"])

    def refresh(self) -> "RemoteTable":
        """Return the table at its newest version; this one, and its reads, keep theirs."""
        return self.lake.table(self.name, backward_iteration=self.backward_iteration)

    def get(self, *key: Any, **named: Any) -> Row | None:
        """Return the row of that key, given in order or by columns; None if there is none."""
        values = self.key.read_values(key, named) if named or not key else key
        nested = len(values) == 1 and isinstance(values[0], tuple | list)
        query = self._texts("key", values[0] if nested else values)
        return next(self._rows([("order", "key"), *query]), None)

    def range(self, *, key_from: Key = None, key_to: Key = None, **how: Any) -> Rows:
        """Return the rows from `key_from` to `key_to`, both included, in key order."""
        keys = [*self._texts("key_from", key_from), *self._texts("key_to", key_to)]
        backward = [("backward_iteration", "true")] if self.backward_iteration else []
        return self._rows([("order", "key"), *backward, *keys], **how)

    def read(self, **how: Any) -> Rows:
        """Return rows in no particular order."""
        return self._rows([("order", "none")], **how)


@dataclass(frozen=True)
class RemoteStore(Handle):
    """Rows by key and time, read by both."""

    ORDER = "time"
    KEY = "by_time"

    def refresh(self) -> "RemoteStore":
        """Return the store at its newest version."""
        return self.lake.window(self.name)

    def fetch(
        self, *, key: Key = None, key_from: Key = None, key_to: Key = None, **times: Any
    ) -> Rows:
        """Return the rows of one key, or of a range of keys, by window start."""
        named = {"time_from": "from", "time_to": "to"}
        how = {named.get(name, name): value for name, value in times.items()}
        keys = {"key": key, "key_from": key_from, "key_to": key_to}
        query = [pair for name, value in keys.items() for pair in self._texts(name, value)]
        return self._rows([("order", "time"), *query], **how)

    fetch_all = fetch

    def fetch_one(self, key: Key, time: datetime | str) -> Row | None:
        """Return the row of that key and window start; of duplicates, the last one."""
        if time is None:
            raise UsageError("fetch_one takes a key and a time; fetch(limit=1) finds the last")
        at = (None,) if key is None else key
        return next(self.fetch(key=at, time_from=time, time_to=time, reverse=True, limit=1), None)


@dataclass(frozen=True)
class RemoteRanking:
    """One version of rankings."""

    lake: Remote
    name: str
    about: Mapping[str, Any]

    @property
    def version(self) -> int:
        return int(self.about["version"])

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Columns that distinguish one ranking from another."""
        return tuple(self.about["partition"])

    def top(self, partition: Mapping[str, Any] | None = None) -> dict[Any, Any]:
        """Return the map rank -> row of one partition, or partition -> rank -> row of several."""
        return self.lake.rank(self.name, partition or {}, [("version", self.version)])


def _path(name: str) -> str:
    if not ADDRESSED.fullmatch(name):
        raise UnknownTable(f"unknown table {name!r}")
    return f"/v1/tables/{quote(name, safe='')}"


def _refusal(status: int, body: bytes) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return {"message": f"the server answers {status}", "hint": ""}
    return said


def _error(status: int, said: Mapping[str, Any]) -> SluiceError:
    """Return the error of a refusal."""
    message, hint = said["message"], said["hint"]
    found = next((one for one in (*TYPES, NoSuchRow) if one.__name__ == said.get("type")), None)
    if found is ConfigError:
        return ConfigError(message.split("\n"), hint=hint)
    kind = STATUSES.get(status, UsageError if status < 500 else Retryable)
    return (found or kind)(message, hint=hint)
