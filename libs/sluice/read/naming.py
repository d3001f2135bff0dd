"""A row as people name it, by its key or as its table's kind allows, and the origin of its values.

For the origin, the change feed is read backwards, version by version, up to the commit in question.
So the cost follows the feeds of the versions since then. It names commits, not single rows of the
inputs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from sluice.declare.registry import kind, kinds
from sluice.delta.log.position import Position
from sluice.delta.places.lake_layout import MissingFiles
from sluice.errors import HistoryLost, UsageError
from sluice.language.names import CHANGE_TYPE, GOES, Row, declared_id
from sluice.read.changelog import Changelog
from sluice.read.commits import Commit, back_from, range_of
from sluice.read.key_order import KeyColumns, KeyRange, only
from sluice.read.keyed import KeyedTable, rows_of
from sluice.read.scan import Scan
from sluice.read.values import check, check_columns, from_text


@dataclass(frozen=True)
class NamingOption:
    """A value that names rows of some kinds beside key and partition, as commands show it."""

    type: type
    metavar: str
    help: str


TIME = NamingOption(
    str, "TIME", "Event time of the row with that KEY, or a time within its window."
)


@dataclass(frozen=True)
class Given:
    """Values that name a row; texts are read by the types of their columns.

    `key`: the key's values in its order; `columns`: the same by their columns' names. `others`:
    those that only some kinds take, by the names of their options.
    """

    key: tuple[Any, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)
    partition: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, key: tuple[Any, ...], partition: Mapping[str, Any] | None, named: Mapping[str, Any]
    ) -> "Given":
        """Return these values; a name that is no kind's option is a key column's."""
        known = naming_options()
        columns = {name: value for name, value in named.items() if name not in known}
        others = {n: v for n, v in named.items() if n in known and v is not None}
        return cls(key, columns, partition or {}, others)

    @property
    def has_key(self) -> bool:
        """True if values of key columns are given."""
        return bool(self.key or self.columns)

    @property
    def is_key(self) -> bool:
        """True if only a key is given."""
        return not self.partition and not self.others

    @property
    def is_place(self) -> bool:
        """True if it is a place within a partition, which another row may take."""
        return bool(self.others) and not self.has_key


@runtime_checkable
class Naming(Protocol):
    """Kind whose rows are also named in other ways than by key."""

    def naming_options(self) -> Mapping[str, NamingOption]:
        """Return the values that name a row, beside key and partition."""

    def find_ranges(self, table: KeyedTable, spec: Any, given: Given) -> tuple[KeyRange, ...]:
        """Return the ranges of the requested rows. Raises UsageError for half a name."""


def naming_options() -> dict[str, NamingOption]:
    """Return the values by which rows of any kind can be named beside key and partition."""
    known = (each.naming_options() for each in kinds() if isinstance(each, Naming))
    return {name: option for options in known for name, option in options.items()}


def row_of(changelog: Changelog, given: Given) -> KeyRange | None:
    """Return the range of exactly one row; None if no row is named so, except by its key.

    A key may be one that the table had before. Raises UsageError if not one row is named.
    """
    table = changelog.table
    if given.is_key:
        if table.current or not _is_named_by_key(table):
            raise _refuse_unnamed(table)
        return table.row_key.exactly(key_values(table, table.key, given))
    found = values_named(table, ranges_of(changelog, given), table.identity)
    if len(found) > 1:
        key = ", ".join(table.key.names)
        raise UsageError(
            f"{len(found)} rows of {table.name!r} match", hint=f"name one by its key ({key})"
        )
    return only(table.identity, found[0]) if found else None


def _is_named_by_key(table: KeyedTable) -> bool:
    return bool(table.identity) and len(table.key.names) == len(table.identity)


def _refuse_unnamed(table: KeyedTable) -> UsageError:
    return UsageError(
        f"the rows of {table.name!r} have no key to identify one by",
        hint=f"`sluice read {table.name} --where ...` shows rows, and `sluice changes "
        f"{table.name}` what each commit changed",
    )


def absent_of(changelog: Changelog, given: Given) -> tuple[KeyRange, ...]:
    """Return ranges of rows that are not there, named like others or by any columns.

    For a place, they are the ranges of its partition. Raises UsageError for an invalid name.
    """
    table = changelog.table
    if given == Given():
        what = f"no row of {table.name!r} is named"
        raise UsageError(what, hint="give its key, or a partition")
    if given.is_key and given.has_key:
        if not table.key.names:
            raise UsageError(
                f"the rows of {table.name!r} have no key to identify one by",
                hint="name them by any of their columns: --partition COLUMN=VALUE",
            )
        return (only(table.key.names, key_values(table, table.key, given)),)
    if given.has_key:
        return ranges_of(changelog, given)
    if given.is_place:
        ranges_of(changelog, given)
    else:
        check_columns(table.name, given.partition, table.snapshot.visible)
    columns = tuple(given.partition)
    return (only(columns, values_of(table, columns, tuple(given.partition.values()))),)


def ranges_of(changelog: Changelog, given: Given) -> tuple[KeyRange, ...]:
    """Return the ranges of rows that are named otherwise than by their key."""
    table = changelog.table
    declared = changelog.declared
    if declared is None or not isinstance(naming := kind(declared.kind), Naming):
        raise not_so(table, "its key") if _is_named_by_key(table) else _refuse_unnamed(table)
    return naming.find_ranges(table, declared.spec, given)


def values_named(
    table: KeyedTable, ranges: tuple[KeyRange, ...], columns: tuple[str, ...]
) -> list[tuple[Any, ...]]:
    """Return these columns of the rows in all ranges."""
    found: list[tuple[Any, ...]] = []
    for part in Scan(table.snapshot, ranges).read_unordered(columns):
        found += zip(*(column.to_pylist() for column in part.columns), strict=True)
    return found


def key_values(table: KeyedTable, key: KeyColumns, given: Given) -> tuple[Any, ...]:
    """Return the values of all columns of a key, in their order and types.

    Raises UsageError for half a key, and for values both in order and by name.
    """
    return values_of(table, key.names, key.read_values(given.key, given.columns))


def values_of(
    table: KeyedTable, columns: tuple[str, ...], given: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the values of columns in their types. Raises UsageError for half a key."""
    if len(columns) != len(given):
        raise table.key.misfit(len(given))
    types = map(table.snapshot.type_of, columns)
    return tuple(
        from_text(value, type_, column) if isinstance(value, str) else check(value, type_, column)
        for column, value, type_ in zip(columns, given, types, strict=True)
    )


def not_so(table: KeyedTable, how: str) -> UsageError:
    """Return the error for a row that is named by options which its table's kind does not take."""
    return UsageError(f"a row of {table.name!r} is named by {how}")


@dataclass(frozen=True)
class ReflectedVersions:
    """Versions of a delivered table that a commit was the first to reflect.

    They are greater than `after`, and at most `upto`. `commits`: those that changed rows and are
    still in the log, newest first. For a source with a key, they are those of its deliveries.
    """

    source: str
    after: int
    upto: int
    commits: tuple[Commit, ...] = field(repr=False)


@dataclass(frozen=True)
class Origin:
    """The commit that gave a row its values; `before` is None if it is new, `after` if it went."""

    commit: Commit
    before: Row | None
    after: Row | None
    reads: tuple[ReflectedVersions, ...]

    @property
    def change(self) -> str:
        """Kind of change that the commit made to the row: insert, update or delete."""
        if self.before is None:
            return "insert"
        return "delete" if self.after is None else "update"


def origin(changelog: Changelog, row: KeyRange, when: str | None = None) -> Origin | None:
    """Return the commit that last changed the row, or its column `when`.

    None if no version ever had the row. Raises UsageError for a column that the table does not
    have, and HistoryLost if the log no longer reaches back to the change.
    """
    table = changelog.table
    if when is not None:
        check_columns(table.name, [when], table.schema.names)
    oldest, hint = table.version + 1, f"`sluice get {table.name}` shows the row as it is"
    for commit in back_from(table.snapshot.uri, table.version):
        oldest = commit.version
        try:
            before, after = _at(changelog, commit, row)
        except MissingFiles:
            raise
        except HistoryLost as lost:
            raise HistoryLost(lost.message, hint=hint) from None
        if when is None or before is None or after is None:
            is_changed = before != after
        else:
            is_changed = bool(before[when] != after[when])
        if is_changed:
            return Origin(commit, before, after, tuple(_reads(changelog, commit)))
    if oldest > 0:
        raise HistoryLost(
            f"the log of {table.name!r} begins at version {oldest}, after the change", hint=hint
        )
    return None


def _at(changelog: Changelog, commit: Commit, key_range: KeyRange) -> tuple[Row | None, Row | None]:
    """Return the row as it was before the commit and after it; None and None if untouched."""
    if not commit.changes_data:
        return None, None
    rows = pa.concat_tables(map(key_range.rows, changelog.read(commit.version)))
    before = after = None
    for row in rows_of(rows):
        shown = {name: row[name] for name in changelog.snapshot.visible}
        if row[CHANGE_TYPE] in GOES:
            before = shown
        else:
            after = shown
    return before, after


def _reads(changelog: Changelog, commit: Commit) -> Iterator[ReflectedVersions]:
    """Yield, for each delivered table, the versions that this commit was the first to reflect."""
    if commit.position is None:
        return
    below = back_from(changelog.snapshot.uri, commit.version - 1)
    last = next((c.position for c in below if c.position), None)
    earlier = _versions_of(last.as_named_in(commit.position)) if last else {}
    lake = changelog.lake
    for name, upto in sorted(_versions_of(commit.position).items()):
        after, base = earlier.get(name, -1), declared_id(name)
        table = lake.project.graph.tables.get(base)
        if table is not None and after != upto:
            uri = lake.uri(table) + name.removeprefix(base)
            every = range_of(uri, after, upto)
            changing = tuple(found for found in every if found.changes_data)
            yield ReflectedVersions(base, after, upto, changing)


def _versions_of(position: Position) -> dict[str, int]:
    references = {name: pin.version for name, pin in position.references.items()}
    return {**references, **position.frontier}
