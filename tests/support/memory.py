"""Delta tables that are dictionaries: as much of them as planning reads, without a file.

What asks Delta for a table's head, history or log is answered from here; everything that is made
of the answers is the real code. A commit's rows are whole, its log is what Delta would write. What
the real code makes of one state of a log it makes once: of thousands of games, that is most of it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from deltalake.exceptions import DeltaError

from sluice.delta.log import Action, Log
from sluice.delta.log.position import Head, Position, head, head_of
from sluice.delta.writing.commit import PROPERTIES
from sluice.errors import HistoryLost, LostRace

Rows = dict[Any, Any]  # key -> row
COMMIT = "_delta_log/"
SIZES = ("size_bytes", "num_records", "path")


@dataclass(frozen=True)
class Change:
    """A row that came, went or changed; None where there is none."""

    key: Any
    old: Any
    new: Any


@dataclass
class Stored:
    """One table: its log and its rows by version, oldest first; the newest number of a batch.

    `known`: its head, or the error in its place, until the log changes.
    """

    id: str
    log: dict[int, list[Action]] = field(default_factory=dict)
    rows: dict[int, Rows] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    txn: int = 0
    known: Head | HistoryLost | None = None

    @property
    def version(self) -> int:
        return next(reversed(self.log))

    def copy(self) -> "Stored":
        return Stored(self.id, dict(self.log), dict(self.rows), set(self.files), self.txn)


class Tables(dict[str, Stored]):
    """Every table of a lake, by URI."""

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """While it lasts, they stand in the place of Delta's."""

        def actions(log: Log, version: int) -> list[Action]:
            try:
                return self[log._files].log[version]  # type: ignore[index]
            except KeyError:
                raise FileNotFoundError(version) from None

        def exists(log: Log, paths: Iterable[str]) -> bool:
            table = self[log._files]  # type: ignore[index]
            return all(
                int(path[len(COMMIT) :][:20]) in table.log
                if path.startswith(COMMIT)
                else path in table.files
                for path in paths
            )

        with (
            patch.object(Position, "from_json", lru_cache(10_000)(Position.from_json)),
            patch.multiple(Log, __init__=remember, actions=actions, _exists=exists),
            patch("sluice.delta.log.position.head_of", known_head),
            patch("sluice.delta.places.delta_rs.DeltaTable", self.opened()),
            patch("sluice.delta.places.delta_rs.options", lambda _uri: None),
            patch("sluice.delta.log.opened.stored_stamp", lambda _uri: None),
            patch("sluice.delta.places.lake_layout.check_format", lambda _lake: None),
        ):
            yield

    def opened(self) -> type:
        """A class of tables, as `DeltaTable`."""
        tables = self

        class Opened:
            def __init__(self, uri: str, version: int | None = None, **_: Any):
                self.table, self.table_uri = tables[uri], uri
                self.at = self.table.version if version is None else version
                if self.at not in self.table.rows:
                    raise DeltaError(f"there is no version {version}")

            @staticmethod
            def is_deltatable(uri: str, _: Any = None) -> bool:
                return uri in tables

            def version(self) -> int:
                return self.table.version

            def history(self, limit: int | None = None) -> list[dict[str, Any]]:
                newest = islice(reversed(self.table.log.items()), limit)
                infos = ((version, actions[0]["commitInfo"]) for version, actions in newest)
                return [{"version": version, **info} for version, info in infos]

            def metadata(self) -> SimpleNamespace:
                return SimpleNamespace(id=self.table.id, configuration=PROPERTIES)

            def protocol(self) -> SimpleNamespace:
                return SimpleNamespace(reader_features=None)

            def transaction_version(self, _: str) -> int:
                return self.table.txn

            def get_add_actions(self, *, flatten: bool = False) -> pa.RecordBatch:
                return added(self.at)

        return Opened

    def create(self, uri: str, position: Position) -> Head:
        self[uri] = Stored(f"{uri} {position.attempt}")
        self._append(uri, {}, position, changes=False)
        return self.head(uri)

    def commit(self, before: Head, rows: Rows, position: Position) -> int:
        """As the committers do: on exactly that version, and only a position if nothing differs."""
        table = self[before.uri]
        if table.version != before.version or table.id != before.table:
            raise LostRace("somebody was first")
        mine, changes = replace(position, after=before.version), rows != table.rows[before.version]
        table.txn = position.batch
        if not changes:
            mine = mine.without_change(before.data_version)
        return self._append(before.uri, rows, mine, changes=changes)

    def follow(self, uri: str, position: Position | None) -> None:
        """A commit that changes no row and lands on whatever is there: upkeep, a setting."""
        table = self[uri]
        self._append(uri, table.rows[table.version], position, changes=False)

    def intrude(self, uri: str, rows: Rows) -> None:
        """Somebody else's rows."""
        self._append(uri, rows, None, changes=True)

    def head(self, uri: str) -> Head:
        found = head(uri)
        assert found is not None
        return found

    def land(self, uri: str, rows: Rows, position: Position) -> None:
        """A commit that somebody's lies below, unseen."""
        self._append(uri, rows, position, changes=True)

    def clean(self, uri: str) -> bool:
        """Forget the log but for its newest commit, if that has a position that counts."""
        table = self[uri]
        info = table.log[table.version][0]["commitInfo"]
        position = Position.from_json(info.get("userMetadata"))
        if position is None or position.after not in (None, table.version - 1):
            return False
        table.log, table.known = {table.version: table.log[table.version]}, None
        return True

    def vacuum(self, uri: str, oldest: int) -> None:
        """Delete what only snapshots before that version need, and feeds up to it.

        As the real one, nothing where the log does not tell of that version.
        """
        if oldest not in self[uri].log:
            return
        self[uri].files -= {f"rows-{version}" for version in range(oldest)}
        self[uri].files -= {f"feed-{version}" for version in range(oldest + 1)}

    def snapshot(self, uri: str, version: int) -> Rows:
        """The rows as of a version."""
        if f"rows-{version}" not in self[uri].files:
            raise FileNotFoundError(f"{uri} at {version} was vacuumed")
        return self[uri].rows[version]

    def changes(self, uri: str, after: int, upto: int) -> Iterator[Change]:
        """The change feed."""
        rows = self[uri].rows
        for version in range(after + 1, upto + 1):
            old, new = rows[version - 1], rows[version]
            if old != new and f"feed-{version}" not in self[uri].files:
                raise FileNotFoundError(f"the feed of {uri} at {version} was vacuumed")
            for key in old.keys() | new.keys():
                if old.get(key) != new.get(key):
                    yield Change(key, old.get(key), new.get(key))

    def _append(self, uri: str, rows: Rows, position: Position | None, *, changes: bool) -> int:
        table = self[uri]
        version = table.version + 1 if table.log else 0
        info: Action = {"operation": "WRITE"}
        if position:
            info["userMetadata"] = position.to_json()
        file = {"path": f"feed-{version}", "size": 1, "dataChange": True}
        table.log[version] = [
            {"commitInfo": info},
            *([{"cdc": file, "add": file}] if changes else []),
        ]
        table.files |= {f"rows-{version}", *([file["path"]] if changes else [])}
        table.rows[version], table.known = rows, None
        return version


def known_head(table: Any, uri: str) -> Head:
    """What the real code finds, once for each state of the table."""
    stored: Stored = table.table
    if stored.known is None:
        try:
            stored.known = head_of(table, uri)
        except HistoryLost as error:
            stored.known = error
    if isinstance(stored.known, HistoryLost):
        raise type(stored.known)(stored.known.message, hint=stored.known.hint)
    return stored.known


@lru_cache(1_000)
def added(version: int) -> pa.RecordBatch:
    """The files of a version: one, of one row."""
    sizes = ([1], [1], [f"rows-{version}"])
    return pa.RecordBatch.from_pydict(dict(zip(SIZES, sizes, strict=True)))


def remember(log: Log, uri: str) -> None:
    log._files = uri  # type: ignore[assignment]
