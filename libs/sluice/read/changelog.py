"""A table's changelog: its change feed by version, or one run's part of it.

Within a version, changes are in key order, and an update's old row precedes its new one. Commits
that change no row are left out. Versions that the log has lost raise a named error.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from sluice.declare.registry import kind, kinds
from sluice.declare.table import Table
from sluice.delta.reading.live import stream_feed
from sluice.errors import HistoryLost, UsageError
from sluice.language.names import CHANGE_TYPE, COMES, COMMIT_VERSION, MARK
from sluice.read.conditions.key_order import KeyOrder
from sluice.read.conditions.values import check_columns
from sluice.read.lake import Lake
from sluice.read.ordered.keyed import KeyedTable
from sluice.read.ordered.rows import Rows
from sluice.read.stored.commits import Commit, back_from
from sluice.read.stored.scan import Touched
from sluice.read.stored.snapshot import Snapshot, open_delta

IS_NEW = "_is_new"
UNREADABLE = (DeltaError, pa.ArrowException)
NO_FEED = "does not have change data enabled"  # in delta-rs's error
LAST_RUNS = 5  # listed if an unknown one was requested
CHANGE_FIELDS = (pa.field(CHANGE_TYPE, pa.string()), pa.field(COMMIT_VERSION, pa.int64()))


class TouchedGroup(Protocol):
    """Group of a view's rows that a version touched, whole, as that view is read."""

    @property
    def version(self) -> int: ...

    def as_json(self, columns: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the group as JSON, for programs: rows of these columns, or whole ones."""
        ...

    def rows(self) -> Iterable[dict[str, Any]]:
        """Return its rows for people; one empty row if none is left."""
        ...


class TouchedGroups(Protocol):
    """Touched groups of several versions."""

    @property
    def columns(self) -> Sequence[str]:
        """Columns of the rows."""
        ...

    @property
    def leading(self) -> Sequence[str]:
        """Columns that people see first."""
        ...

    def __iter__(self) -> Iterator[TouchedGroup]: ...


@runtime_checkable
class Mapped(Protocol):
    """Kind whose tables are also read in groups of rows."""

    def read_maps(
        self, changelog: "Changelog", *, from_version: int | None, run: str | None
    ) -> TouchedGroups:
        """Return the groups that each version of a changelog touched, or one run's versions."""
        ...


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

    def ordered(self, version: int) -> "OrderedFeed":
        """Return the changes of one version, of which parts can be taken, in order."""
        try:
            feed = self._read_feed(version)
        except UNREADABLE as error:
            if NO_FEED in str(error):
                first = self._first_readable(version)
                raise HistoryLost(
                    f"{self.snapshot.name!r} had no change feed at version {version}",
                    hint=f"it has one from version {first} on: ask for --from-version {first}",
                ) from None
            is_deleted = "not found" in str(error)
            why = "their files are deleted" if is_deleted else f"{error}"
            raise self._lost(
                f"the changes of version {version} can't be read: {why}",
                self._first_readable(version) if is_deleted else None,
            ) from None
        names = [n for n in self.snapshot.schema.names if n in feed.column_names]
        fields = [*CHANGE_FIELDS, *map(self.snapshot.schema.field, names)]
        feed = feed.select([field.name for field in fields]).cast(pa.schema(fields))
        feed = feed.append_column(IS_NEW, pc.is_in(feed[CHANGE_TYPE], pa.array(COMES)))
        identity = [c for c in self.table.identity if c in names]
        order = KeyOrder((*identity, IS_NEW)).rank(feed.select([*identity, IS_NEW]))
        return OrderedFeed(feed, order, self.snapshot.schema)

    def _read_feed(self, version: int) -> pa.Table:
        delta = open_delta(self.snapshot.name, self.snapshot.uri, self.snapshot.version)
        return stream_feed(delta, version - 1, version).read_all()

    def _first_readable(self, lost: int) -> int:
        """Return the first version behind a lost one that isn't; files are deleted in order."""
        later = [commit.version for commit in self.commits(from_version=lost + 1)]
        at = bisect_left(later, True, key=self._is_readable)
        return [*later, self.snapshot.version + 1][at]

    def _is_readable(self, version: int) -> bool:
        try:
            self._read_feed(version)
        except UNREADABLE:
            return False
        return True

    def _lost(self, why: str, first: int | None = None) -> HistoryLost:
        rest = "later versions with --from-version" if first is None else f"--from-version {first}"
        return HistoryLost(
            f"the changelog of {self.snapshot.name!r} is partly gone: {why}",
            hint=f"ask for {rest}; maintenance and `forget` remove what no view needs any more",
        )


@dataclass(frozen=True)
class OrderedFeed:
    """Changes of a version, and their order. Only rows that are taken are put in it.

    `schema`: of the table today, which may have younger columns.
    """

    stored: pa.Table
    order: pa.Array
    schema: pa.Schema

    @property
    def count(self) -> int:
        return len(self.order)

    def rows(self, begin: int, count: int) -> pa.Table:
        """Return so many changes from a place on, or fewer at the end; with a mark of new rows."""
        feed = self.stored.take(self.order.slice(begin, count))
        for field in self.schema:
            if field.name not in feed.column_names:
                feed = feed.append_column(field, pa.nulls(feed.num_rows, field.type))
        return feed


def _run_of(commit: Commit) -> str:
    return commit.position.run if commit.position else ""
