"""A table's changelog over HTTP: page by page, or as server-sent events.

Each change has a place: the table's incarnation, its version, and its number within the version,
whose changes have one order. A client that comes back with the last place it has seen gets exactly
the changes behind it. The place of a version's last change names the version alone, so that its
files may be cleaned. A commit without changes, such as one of upkeep, also moves the place.
"""

import math
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from threading import Lock

import pyarrow as pa

from sluice.delta.log.opened import newest_version
from sluice.errors import SluiceError
from sluice.read.changelog import Changelog
from sluice.read.commits import Commit
from sluice.read.keyed import Rows
from sluice.read.scan import Overdue, Touched
from sluice.read.snapshot import NotBuilt
from sluice.serve.answers import Answer, Page, Refused, to_json
from sluice.serve.questions import Question, refuse, refuse_many, took_long
from sluice.serve.reads import incarnation, uris_of

AT_ONCE = 1_000  # events that are made at a time
PAGE, PART = 8_000_000, 2_000_000  # bytes of changes in Arrow: of a page, and that a stream holds
LARGE = 4_000_000  # bytes of files of a version's changes
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


class Busy(Overdue):
    """A large version that can't be read yet, because another one is read."""


_large = Lock()


@dataclass
class Room:
    """Room for changes: rows, bytes in Arrow, and the time by a clock at which a read ends."""

    rows: int
    bytes: int
    until: float


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

    def parts(
        self, changelog: Changelog, after: Place | None, room: Room
    ) -> Iterator[tuple[int, int, pa.Table, bool]]:
        """Yield changes behind a place, each time as many of a version as there is room for.

        They come with their version, the number of the first, and True if the version has no more.
        """
        first = None if after is None else after.version + (after.number is None)
        for commit in changelog.commits(from_version=first, run=self.asked.get("run")):
            is_begun, is_end = after is not None and commit.version == after.version, False
            begin = (after.number or 0) + 1 if after and is_begun else 0
            while not is_end:
                rows, is_end = self._take(changelog, commit, begin, room)
                yield commit.version, begin, rows, is_end
                begin += rows.num_rows

    def _take(
        self, changelog: Changelog, commit: Commit, begin: int, room: Room
    ) -> tuple[pa.Table, bool]:
        """Return a part as it is shown. Keeps nothing of the other changes.

        Large versions are read one at a time; only pages wait for that. Raises Busy if it is not
        their turn, and Overdue.
        """
        wait = max(0, room.until - time.monotonic()) if room.until < math.inf else 0
        is_large = commit.written + commit.removed > LARGE
        if is_large and not _large.acquire(timeout=wait):
            raise Busy
        try:
            feed = changelog.ordered(commit.version, room.bytes, room.until)
            rows = feed.rows(begin, min(feed.within(room.bytes), room.rows))
        finally:
            if is_large:
                pa.default_memory_pool().release_unused()
                _large.release()
        shown = rows.select(changelog.schema(self.asked.columns).names)
        return self.asked.hide_notes(shown), begin + rows.num_rows >= feed.count

    def place(self, version: int, taken: int, is_end: bool) -> Place:
        """Return the place behind that many changes of a version."""
        return Place(self.made, version, None if is_end else taken - 1)

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
        room = Room(sys.maxsize, PART, math.inf)
        for version, begin, rows, is_end in self.parts(changelog, place, room):
            said, end = Rows(iter([rows]), rows.schema, version, Touched()), begin + rows.num_rows
            numbered = enumerate(said, begin + 1)
            while some := list(islice(numbered, AT_ONCE)):
                texts = list[bytes]()
                for n, row in some:
                    place = self.place(version, n, is_end and n == end)
                    texts.append(f"id: {place}\nevent: change\ndata: ".encode() + to_json(row))
                assert place is not None
                yield b"\n\n".join([*texts, b""]), place
        if place is None or (place.version <= reached.version and place != reached):
            yield f"id: {reached}\n\n".encode(), reached


def changes(asked: Question) -> Answer:
    """Return a page of changes. Its cursor is the place behind them, also at the end."""
    followed = Followed.of(asked)
    changelog = Changelog.open(asked.lake, asked.address, asked.get("to_version"))
    begin, schema = followed.begin(asked.get("cursor")), changelog.schema(asked.columns)
    last = asked.get("to_version")
    if asked.get("cursor") and begin and last is not None and begin.version > last:
        raise refuse(f"the cursor is behind version {last}", "ask for a later to_version, or none")
    found, room = list[pa.RecordBatch](), Room(asked.limit, min(asked.bytes, PAGE), asked.until)
    parts, place = followed.parts(changelog, begin, room) if asked.limit else (), begin
    try:
        for version, first, rows, is_end in parts:
            found += rows.combine_chunks().to_batches()
            room.rows, room.bytes = room.rows - rows.num_rows, room.bytes - rows.nbytes
            place = followed.place(version, first + rows.num_rows, is_end)
            if not is_end or room.rows <= 0 or room.bytes <= 0 or asked.is_late:
                break
        else:
            newest = Place(followed.made, changelog.snapshot.version)
            place = begin if not parts or (begin and begin.version > newest.version) else newest
    except Overdue as error:
        if not found:
            busy = refuse_many("another version of many changes is being read")
            raise (busy if isinstance(error, Busy) else took_long(asked.limits)) from None
    version = changelog.snapshot.version
    cursor = str(place) if place and place.version >= 0 else None
    return Page(asked.address, version, schema, tuple(found), cursor).answer(asked.format)


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
        except Busy:
            pass  # it goes on at the next look
        except (SluiceError, OSError):
            if followed.is_there:
                raise
        if not followed.is_there:
            hint = "once it is created again, begin without a place"
            raise Refused(HTTPStatus.GONE, f"{asked.address} was dropped", hint)
        yield b""
