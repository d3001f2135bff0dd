"""A table's changelog over HTTP: page by page, or as server-sent events.

Each change has a place: the table's incarnation, its version, and its number within the version,
whose changes have one order. A client that comes back with the last place it has seen gets exactly
the changes behind it. The place of a version's last change names the version alone, so that its
files may be cleaned. A commit without changes, such as one of upkeep, also moves the place.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus

import pyarrow as pa

from sluice.delta.log.opened import newest_version
from sluice.errors import HistoryLost, SluiceError
from sluice.read.changelog import Changelog, OrderedFeed
from sluice.read.ordered.rows import Rows
from sluice.read.stored.scan import Touched
from sluice.read.stored.snapshot import NotBuilt
from sluice.serve.answers import Answer, Page, Refused, to_json
from sluice.serve.questions import Question, refuse
from sluice.serve.reads import incarnation, uris_of

AT_ONCE = 1_000  # events that are made at a time
WRITTEN = re.compile(r"(?P<made>[0-9a-f]{12})\.(?P<version>\d{1,18})(\.(?P<number>\d{1,18}))?")


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

    def walk(
        self, changelog: Changelog, after: Place | None
    ) -> Iterator[tuple[int, int, OrderedFeed]]:
        """Yield versions with their changes, and how many of these are not behind a place."""
        first = None if after is None else after.version + (after.number is None)
        for commit in changelog.commits(from_version=first, run=self.asked.get("run")):
            feed = changelog.ordered(commit.version)
            is_begun = after is not None and commit.version == after.version
            yield commit.version, (after.number or 0) + 1 if after and is_begun else 0, feed

    def take(self, changelog: Changelog, feed: OrderedFeed, begin: int, count: int) -> pa.Table:
        """Return changes of a version as they are shown: so many from a place on, if there are."""
        rows = feed.rows(begin, count).select(changelog.schema(self.asked.columns).names)
        return self.asked.hide_notes(rows)

    def place(self, version: int, feed: OrderedFeed, taken: int) -> Place:
        """Return the place behind that many changes of a version."""
        return Place(self.made, version, None if taken == feed.count else taken - 1)

    @property
    def is_there(self) -> bool:
        """True if the table was not dropped."""
        try:
            return incarnation(self.asked.address, self.uri) == self.made
        except NotBuilt:
            return False

    def advance(self, place: Place | None) -> Iterator[tuple[bytes, Place]]:
        """Yield events of the changes after a place, until now, each with the place it leads to."""
        changelog = Changelog.open(self.asked.lake, self.asked.address)
        reached = Place(self.made, changelog.snapshot.version)
        for version, skip, feed in self.walk(changelog, place):
            for begin in range(skip, feed.count, AT_ONCE):
                rows = self.take(changelog, feed, begin, AT_ONCE)
                said = Rows(iter([rows]), rows.schema, version, Touched())
                place = self.place(version, feed, begin + rows.num_rows)
                yield (
                    b"".join(
                        f"id: {self.place(version, feed, n)}\nevent: change\ndata: ".encode()
                        + to_json(row)
                        + b"\n\n"
                        for n, row in enumerate(said, begin + 1)
                    ),
                    place,
                )
        if place is None or (place.version <= reached.version and place != reached):
            yield f"id: {reached}\n\n".encode(), reached


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
        for version, skip, feed in followed.walk(changelog, begin):
            rows = followed.take(changelog, feed, skip, limit - count)
            found += rows.combine_chunks().to_batches()
            count, size = count + rows.num_rows, size + rows.nbytes
            if count >= limit or size >= asked.bytes or asked.is_late:
                taken = followed.place(version, feed, skip + rows.num_rows)
                place = taken if rows.num_rows else begin or place
                break
    except HistoryLost as error:
        raise Refused.of(HTTPStatus.GONE, error) from None
    version = changelog.snapshot.version
    page = Page(asked.address, version, schema, tuple(found), str(place))
    return page.answer(asked.format)


def events(asked: Question, after: str | None) -> Iterator[bytes]:
    """Yield server-sent events: changes after a place, then those of new versions; else nothing.

    Raises Refused for what can't be followed, and when the table was dropped.
    """
    if others := {"limit", "run", "to_version"} & asked.values.keys():
        raise refuse(f"events go on without end: leave out {', '.join(sorted(others))}")
    followed = Followed.of(asked)
    place, seen = followed.begin(after), -1
    while True:
        try:
            if (newest := newest_version(followed.uri)) > seen:
                for found, reached in followed.advance(place):
                    yield found
                    place = reached
                seen = newest
        except (SluiceError, OSError):
            if followed.is_there:
                raise
        if not followed.is_there:
            hint = "once it is created again, begin without a place"
            raise Refused(HTTPStatus.GONE, f"{asked.address} was dropped", hint)
        yield b""
