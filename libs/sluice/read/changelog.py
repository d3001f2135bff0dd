"""A table's changelog: its change feed by version, one run's part of it, or samples of its changes.

Within a version, changes are in key order, and an update's old row precedes its new one; without a
key, all columns order them. Commits that change no row are left out. Versions that the log has lost
raise a named error.

For samples, the change feed gives candidates; only as many as needed are read. Each is then looked
up in both versions, so a row that changed back is none. Cost: two look-ups for each candidate.
"""

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice, takewhile
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from sluice.declare.registry import kind, kinds
from sluice.declare.table import Table
from sluice.delta.log.opened import CommitCache, commit_of
from sluice.delta.places.lake_layout import MissingFiles
from sluice.delta.reading.live import stream_feed
from sluice.errors import HistoryLost, UsageError
from sluice.language.names import CHANGE_TYPE, COMES, COMMIT_VERSION, MARK, Row
from sluice.read.commits import Commit, back_from
from sluice.read.key_order import KeyColumns, KeyOrder, KeyRange, places
from sluice.read.keyed import KeyedTable, Rows
from sluice.read.lake import Lake
from sluice.read.scan import Overdue, Touched
from sluice.read.snapshot import Snapshot, open_delta
from sluice.read.values import check_columns

IS_NEW = "_is_new"
KEYS = 48_000_000  # bytes of what orders the changes of large versions
UNREADABLE = (DeltaError, pa.ArrowException)
NO_FEED = "does not have change data enabled"  # in delta-rs's error
LAST_RUNS = 5  # listed if an unknown one was requested
CHANGE_FIELDS = (pa.field(CHANGE_TYPE, pa.string()), pa.field(COMMIT_VERSION, pa.int64()))


class TooManyChanges(UsageError):
    """A version with more changes than this process can put in order."""


class TouchedGroup(Protocol):
    """Group of a view's rows that a version touched, whole, as that view is read."""

    @property
    def version(self) -> int: ...

    def as_json(self, columns: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the group as JSON, for programs: rows of these columns, or whole ones."""

    def rows(self) -> Iterable[dict[str, Any]]:
        """Return its rows for people; one empty row if none is left."""


class TouchedGroups(Protocol):
    """Touched groups of several versions."""

    @property
    def columns(self) -> Sequence[str]:
        """Columns of the rows."""

    @property
    def leading(self) -> Sequence[str]:
        """Columns that people see first."""

    def __iter__(self) -> Iterator[TouchedGroup]: ...


@runtime_checkable
class Mapped(Protocol):
    """Kind whose tables are also read in groups of rows."""

    def read_maps(
        self, changelog: "Changelog", *, from_version: int | None, run: str | None
    ) -> TouchedGroups:
        """Return the groups that each version of a changelog touched, or one run's versions."""


@dataclass(frozen=True)
class Changelog:
    """Changes of one table up to a pinned version."""

    lake: Lake
    name: str
    table: KeyedTable

    @classmethod
    def open(cls, lake: Lake, name: str, to_version: int | None = None) -> "Changelog":
        """Return the changelog of that table, up to its head or to a version."""
        opened = lake.table(name, version=to_version)
        if not isinstance(opened, KeyedTable):
            raise UsageError(
                f"{name!r} is computed when it is read: it has no changelog of its own",
                hint=f"read those of the tables that it reads: {', '.join(opened.stored)}",
            )
        return cls(lake, name, opened)

    @property
    def snapshot(self) -> Snapshot:
        return self.table.snapshot

    @property
    def declared(self) -> Table | None:
        """The table as it is declared; None of an internal one, such as a quarantine."""
        return None if MARK in self.name else self.lake.project.graph.table(self.name)

    @property
    def leading(self) -> tuple[str, ...]:
        """Columns that people see first: the change, then what identifies the row."""
        return (CHANGE_TYPE, COMMIT_VERSION, *self.table.leading)

    def commits(self, *, from_version: int | None = None, run: str | None = None) -> list[Commit]:
        """Return the commits that changed rows, oldest first."""
        first = from_version or 0
        if first > self.snapshot.version + 1:
            raise self._too_late(first)
        every = back_from(self.snapshot.uri, self.snapshot.version)
        kept = list(takewhile(lambda commit: commit.version >= first, every))[::-1]
        oldest = kept[0].version if kept else self.snapshot.version + 1
        if from_version is not None and first < oldest:
            raise self._lost(f"the log begins at version {oldest}", oldest)
        if run is not None and not any(_run_of(c) == run for c in kept):
            self._check_run(run, kept)
        return [c for c in kept if c.changes_data and (run is None or _run_of(c) == run)]

    def schema(self, columns: Iterable[str] | None = None) -> pa.Schema:
        """Return the schema of changes: their type and version, then the visible columns."""
        visible = [self.snapshot.schema.field(c) for c in self.snapshot.visible]
        fields = {field.name: field for field in (*CHANGE_FIELDS, *visible)}
        return pa.schema([fields[c] for c in check_columns(self.name, columns, fields)])

    def rows(
        self,
        *,
        from_version: int | None = None,
        run: str | None = None,
        columns: Iterable[str] | None = None,
    ) -> Rows:
        """Return every change, led by its type and version; or only `columns`. Lazy by version."""
        schema = self.schema(columns)
        commits = self.commits(from_version=from_version, run=run)
        tables = (self.feed(c.version).select(schema.names) for c in commits)
        return Rows(tables, schema, self.snapshot.version, Touched())

    def maps(self, *, from_version: int | None = None, run: str | None = None) -> TouchedGroups:
        """Return what each version touched, whole, as the table's kind shows it.

        Raises UsageError if its kind shows only rows.
        """
        declared = self.declared
        if declared is None or not isinstance(mapped := kind(declared.kind), Mapped):
            what = f"of kind {declared.declared_kind}" if declared else "an internal table"
            others = ", ".join(each.name for each in kinds() if isinstance(each, Mapped))
            raise UsageError(
                f"{self.name!r} is {what}: its changes can only be shown as rows",
                hint=f"leave out `--as map`, which is for tables of kind {others}",
            )
        return mapped.read_maps(self, from_version=from_version, run=run)

    def _too_late(self, first: int) -> UsageError:
        newest = self.table.refresh().snapshot.version
        return UsageError(
            f"{self.snapshot.name!r} has no version {first} yet"
            if first > newest
            else f"the first version, {first}, is after the last, {self.snapshot.version}",
            hint=f"the newest version is {newest}",
        )

    def _check_run(self, run: str, commits: Iterable[Commit]) -> None:
        """Refuse a run that no table of the lake knows; others may have changed nothing here."""
        if not self.lake.knows_run(run):
            last = list(dict.fromkeys(_run_of(c) for c in list(commits)[::-1] if _run_of(c)))[
                :LAST_RUNS
            ]
            raise UsageError(
                f"no run {run!r} is recorded in this lake",
                hint=f"the last runs that changed {self.snapshot.name!r} are: {', '.join(last)}"
                if last
                else "`sluice status` names each table's last run",
            )

    def feed(self, version: int) -> pa.Table:
        """Return the changes of one version, in order, with hidden columns."""
        feed = self.ordered(version)
        return feed.rows(0, feed.count)

    def ordered(
        self, version: int, most: float = math.inf, until: float = math.inf
    ) -> "OrderedFeed":
        """Return the changes of one version, of which parts can be taken, in order.

        Of more than `most` bytes, only what orders them is kept: each part is read again. Raises
        TooManyChanges if that is too much, too, and Overdue at the time `until`.
        """
        read, commit = partial(self.read, version, until), commit_of(self.snapshot.uri, version)
        if known := _known.find(commit):
            return OrderedFeed(*known, read)
        order = KeyOrder(self._order)
        parts, keys, size, kept = list[pa.Table](), list[pa.Table](), 0, 0
        for part in read():
            parts, size = [*parts, part] if size <= most else [], size + part.nbytes
            keys.append(order.sort(part.select(self._order)))  # a copy: `part` is let go
            kept += keys[-1].nbytes
            if size > most and kept > KEYS:
                raise self._too_many(version)
        found = order.sort(pa.concat_tables(keys)), size
        if size <= most:
            return OrderedFeed(*found, lambda: parts)
        _known.keep(commit, found)
        return OrderedFeed(*found, read)

    @cached_property
    def _order(self) -> tuple[str, ...]:
        """Columns that order changes: the identity, or all if there is none."""
        every = (f.name for f in self.snapshot.schema if not pa.types.is_nested(f.type))
        return (*(self.table.identity or every), IS_NEW)

    def read(self, version: int, until: float = math.inf) -> Iterator[pa.Table]:
        """Yield the changes of one version as they are stored, with a mark of new rows."""
        fields = pa.schema([*CHANGE_FIELDS, *self.snapshot.schema])
        try:
            for part in self._read_feed(version):
                if time.monotonic() > until:
                    raise Overdue
                missing = {*fields.names}.difference(part.column_names)  # younger columns
                columns = [pa.nulls(len(part)) if n in missing else part[n] for n in fields.names]
                found = pa.table(columns, fields.names).cast(fields)
                is_new = pc.is_in(found[CHANGE_TYPE], pa.array(COMES))
                yield found.append_column(IS_NEW, is_new)
        except UNREADABLE as error:
            if NO_FEED in str(error):
                first = self._first_readable(version)
                raise HistoryLost(
                    f"{self.snapshot.name!r} had no change feed at version {version}",
                    hint=f"it has one from version {first} on: ask for --from-version {first}",
                ) from None
            is_deleted = "not found" in str(error)
            if is_deleted and isinstance(lost := self.snapshot.report_expired(), MissingFiles):
                raise lost from None
            why = "their files are deleted" if is_deleted else f"{error}"
            raise self._lost(
                f"the changes of version {version} can't be read: {why}",
                self._first_readable(version) if is_deleted else None,
            ) from None

    def _read_feed(self, version: int) -> Iterator[pa.Table]:
        delta = open_delta(self.snapshot.name, self.snapshot.uri, self.snapshot.version)
        feed = stream_feed(delta, version - 1, version)
        yield feed.schema.empty_table()
        for batch in feed:
            yield pa.Table.from_batches([batch])

    def _too_many(self, version: int) -> TooManyChanges:
        return TooManyChanges(
            f"version {version} of {self.snapshot.name!r} changed too many rows to put in order "
            f"here: their keys have more than {KEYS // 1_000_000} MB",
            hint=f"read the rows after it with `sluice read {self.snapshot.name} --version "
            f"{version}`, and go on with --from-version {version + 1}",
        )

    def _first_readable(self, lost: int) -> int:
        """Return the first version behind a lost one that isn't; files are deleted in order."""
        later = [commit.version for commit in self.commits(from_version=lost + 1)]
        at = bisect_left(later, True, key=self._is_readable)
        return [*later, self.snapshot.version + 1][at]

    def _is_readable(self, version: int) -> bool:
        try:
            return all(True for _ in self._read_feed(version))
        except UNREADABLE:
            return False

    def _lost(self, why: str, first: int | None = None) -> HistoryLost:
        rest = "later versions with --from-version" if first is None else f"--from-version {first}"
        return HistoryLost(
            f"the changelog of {self.snapshot.name!r} is partly gone: {why}",
            hint=f"ask for {rest}; maintenance and `forget` remove what no view needs any more",
        )


@dataclass(frozen=True)
class OrderedFeed:
    """Changes of a version in order, of which parts are read.

    `keys`: what orders them, in order. `bytes`: of all of them in Arrow. `read`: yields them, in no
    order.
    """

    keys: pa.Table
    bytes: int
    read: Callable[[], Iterable[pa.Table]]

    @property
    def count(self) -> int:
        return int(self.keys.num_rows)

    def within(self, size: int) -> int:
        """Return how many changes have that many bytes, about; at least one."""
        return max(1, size * self.count // max(1, self.bytes))

    def rows(self, begin: int, count: int) -> pa.Table:
        """Return so many changes from a place on, or fewer at the end; with a mark of new rows."""
        order, part = KeyOrder(tuple(self.keys.column_names)), self.keys.slice(begin, count)
        found, before = self.read(), 0
        if not part.num_rows:
            found = islice(found, 1)  # for the columns
        elif part.num_rows < self.count:
            ends = (part.slice(n, 1).to_pylist()[0] for n in (0, part.num_rows - 1))
            first, last = (places(tuple(row.values())) for row in ends)
            found = map(KeyRange(order.columns, first, last).rows, found)
            before = begin - (pc.sum(order.before(self.keys, first)).as_py() or 0)
        return order.sort(pa.concat_tables(found)).slice(before, part.num_rows)


# What orders large versions' changes, and their bytes, by commits.
_known: CommitCache[tuple[pa.Table, int]] = CommitCache(KEYS, lambda known: known[0].nbytes)


def _run_of(commit: Commit) -> str:
    return commit.position.run if commit.position else ""


SPARE = 10  # candidates for each row asked for


@dataclass(frozen=True)
class Sample:
    """One row that differs: `before` is None if it is new, `after` if it is gone."""

    before: Row | None
    after: Row | None


def samples(lake: Lake, table: Table, version: int | None, most: int) -> Iterator[Sample]:
    """Yield up to `most` rows in which the table's head differs from `version`.

    Without a version, all rows are new.
    """
    now = lake.stored(table)
    was = lake.stored(table, version) if version is not None else None
    found = 0
    for key in _candidates(now, -1 if version is None else version, most * SPARE):
        sample = Sample(row_of(was, key) if was else None, row_of(now, key))
        if found < most and sample.before != sample.after:
            found += 1
            yield sample


def _candidates(now: KeyedTable, after: int, most: int) -> Iterator[tuple[Any, ...]]:
    """Yield keys that versions after `after` touched, each once."""
    seen: set[tuple[Any, ...]] = set()
    delta = open_delta(now.name, now.snapshot.uri, now.version)
    for version in range(after + 1, now.version + 1):
        for batch in stream_feed(delta, version - 1, version):
            names = [name for name in now.identity if name in batch.schema.names]
            for row in batch.select(names).to_pylist() if len(names) == len(now.identity) else ():
                key = tuple(row[name] for name in now.identity)
                if key not in seen and len(seen) < most:
                    seen.add(key)
                    yield key
            if len(seen) >= most:
                return


def row_of(table: KeyedTable, key: tuple[Any, ...]) -> Row | None:
    """Return the row of a whole key, hidden columns of it included; None if there is none."""
    if not {*table.identity} <= {*table.snapshot.schema.names}:
        return None  # rebuilt with a key of other columns
    columns = KeyColumns.of(table.name, table.identity, table.snapshot.schema)
    rows = table.select((columns.exactly(key),), None, limit=1)
    return next((dict(row) for row in rows), None)
