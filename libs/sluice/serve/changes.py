"""A table's changelog over HTTP: page by page, or as server-sent events.

Each change has a place: the table's incarnation, its version, and its number within the version,
whose changes have one order. A client that comes back with the last place it has seen gets exactly
the changes behind it. The place of a version's last change names the version alone, so that its
files may be cleaned. A commit without changes, such as one of upkeep, also moves the place.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import pyarrow as pa

from sluice.delta.log.opened import newest_version
from sluice.errors import HistoryLost, SluiceError
from sluice.read.changelog import Changelog
from sluice.read.ordered.rows import Rows
from sluice.read.stored.scan import Touched
from sluice.serve.answers import Answer, Page, Refused, to_json, without_paths
from sluice.serve.questions import Question, refuse
from sluice.serve.reads import AGAIN, incarnation, uris_of

AT_ONCE = 1_000  # events that are made at a time
POLL, PING = 0.3, 15.0  # seconds between looks at the log, and between signs of life
WRITTEN = re.compile(r"(?P<made>[0-9a-f]{12})\.(?P<version>\d{1,18})(\.(?P<number>\d{1,18}))?")
T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """Place in a changelog: behind a change of a version, or behind all of them."""

    made: str
    version: int
    number: int | None = None

    @classmethod
    def read(cls, text: str) -> "Place":
        """Return the place of a text. Raises Refused for any other text."""
        found = WRITTEN.fullmatch(text)
        if not found:
            raise refuse("this is no place in a changelog", "give the last event's id, or a cursor")
        number = found["number"]
        return cls(found["made"], int(found["version"]), None if number is None else int(number))

    def __str__(self) -> str:
        return f"{self.made}.{self.version}" + ("" if self.number is None else f".{self.number}")


@dataclass(frozen=True)
class Changes:
    """Changes of one version from some number on; `count`: those of the whole version."""

    version: int
    first: int
    count: int
    rows: pa.Table

    def place(self, made: str, taken: int) -> Place:
        """Return the place behind the first of these rows."""
        last = self.first + taken - 1
        return Place(made, self.version, None if last == self.count - 1 else last)


@dataclass(frozen=True)
class Followed:
    """Changelog of a table, read from places."""

    asked: Question
    uri: str
    made: str

    @classmethod
    def of(cls, asked: Question) -> "Followed":
        Changelog.open(asked.lake, asked.address)  # or it is refused
        uri = uris_of(asked)[asked.address]
        return cls(asked, uri, incarnation(asked.address, uri))

    def begin(self, after: str | None) -> Place | None:
        """Return the place after which a request continues; None for the log's begin."""
        if after is None:
            first = self.asked.get("from_version")
            return Place(self.made, first - 1) if first is not None else None
        place = Place.read(after)
        if place.made != self.made:
            why = f"{self.asked.address} was dropped and created again"
            raise Refused(HTTPStatus.GONE, why, "begin again without a place")
        return place

    def walk(self, changelog: Changelog, after: Place | None) -> Iterator[Changes]:
        """Yield the changes behind a place, by version."""
        names = changelog.schema(self.asked.columns).names
        first = None if after is None else after.version + (after.number is None)
        for commit in changelog.commits(from_version=first, run=self.asked.get("run")):
            feed = changelog.feed(commit.version).select(names)
            is_begun = after is not None and commit.version == after.version
            skip = (after.number or 0) + 1 if after and is_begun else 0
            yield Changes(commit.version, skip, feed.num_rows, feed.slice(skip))


def changes(asked: Question) -> Answer:
    """Return a page of changes. Its cursor is the place behind them, also at the end."""
    followed = Followed.of(asked)
    changelog = Changelog.open(asked.lake, asked.address, asked.get("to_version"))
    begin, limit = followed.begin(asked.get("cursor")), asked.limit
    schema = changelog.schema(asked.columns)
    place = Place(followed.made, changelog.snapshot.version)
    if begin and begin.version > place.version:
        place = begin
    found, count, size = list[pa.RecordBatch](), 0, 0
    try:
        for part in followed.walk(changelog, begin):
            rows = part.rows.slice(0, limit - count)
            found += rows.combine_chunks().to_batches()
            count, size = count + rows.num_rows, size + rows.nbytes
            if count >= limit or size >= asked.limits.bytes or asked.is_late:
                place = (
                    part.place(followed.made, rows.num_rows) if rows.num_rows else begin or place
                )
                break
    except HistoryLost as error:
        raise Refused(HTTPStatus.GONE, error.message, error.hint) from None
    version = changelog.snapshot.version
    page = Page(asked.address, version, schema, tuple(found), str(place))
    return page.answer(asked.format)


class Stream:
    """Server-sent events of one client: those after a place, then those of new versions."""

    def __init__(self, asked: Question, after: str | None) -> None:
        self.followed = Followed.of(asked)
        self._asked = asked
        self._place = self.followed.begin(after)
        self._left: Changes | None = None
        self._parts = self._open()

    def take(self) -> bytes:
        """Return the next events; nothing if there is nothing new."""
        if self._left is None:
            self._left = next(self._parts, None)
        if self._left is None:
            return self._advance()
        part = self._left
        rows, made = part.rows.slice(0, AT_ONCE), self.followed.made
        said = Rows(iter([rows]), rows.schema, part.version, Touched())
        events = [
            f"id: {part.place(made, n)}\nevent: change\ndata: ".encode() + to_json(row) + b"\n\n"
            for n, row in enumerate(said, 1)
        ]
        done = part.first + rows.num_rows
        self._place = part.place(made, rows.num_rows) if events else self._place
        rest = part.rows.slice(AT_ONCE)
        self._left = Changes(part.version, done, part.count, rest) if rest.num_rows else None
        return b"".join(events)

    def _advance(self) -> bytes:
        """Move behind the newest version that was read; open a newer one, if there is one."""
        reached = Place(self.followed.made, self._upto)
        said = b"" if self._place == reached else f"id: {reached}\n\n".encode()
        if self._place is None or self._place.version <= self._upto:
            self._place = reached
        newest = newest_version(self.followed.uri)
        made = incarnation(self._asked.address, self.followed.uri) if newest >= 0 else None
        if made != self.followed.made:
            raise Refused(HTTPStatus.GONE, f"{self._asked.address} was dropped", AGAIN)
        if newest > self._upto:
            self._parts = self._open()
            return said or self.take()
        return said

    def _open(self) -> Iterator[Changes]:
        changelog = Changelog.open(self._asked.lake, self._asked.address)
        self._upto = changelog.snapshot.version
        return self.followed.walk(changelog, self._place)


async def follow(
    stream: Stream, first: bytes, work: Callable[[Callable[[], bytes]], Awaitable[bytes]]
) -> AsyncIterator[bytes]:
    """Yield a stream's events as they arise; `work` runs a read elsewhere. Ends with an error."""
    yield first or b": begin\n\n"
    heard = time.monotonic()
    while True:
        try:
            events = await work(stream.take)
        except (Refused, SluiceError) as error:
            said: dict[str, Any] = {"message": without_paths(error.message), "hint": error.hint}
            yield b"event: error\ndata: " + to_json({"error": said}) + b"\n\n"
            return
        if events:
            yield events
            heard = time.monotonic()
            continue
        if time.monotonic() - heard > PING:
            yield b": still here\n\n"
            heard = time.monotonic()
        await asyncio.sleep(POLL)
