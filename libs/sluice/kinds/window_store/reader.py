"""A window store: rows by key and event time, read oldest or newest first, without Spark.

Rows are ordered by window start, and within one start by key; reverse is the exact mirror. Bounds
are inclusive.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypedDict, Unpack

import pyarrow as pa

from sluice.declare.table import Table
from sluice.declare.table_spec import END, START
from sluice.errors import UsageError
from sluice.kinds.window_store import WindowStore
from sluice.language.names import Row, unknown
from sluice.pages import Address, Chapter, data
from sluice.read.key_order import Key, KeyColumns, KeyOrder, KeyRange, Places, only, places
from sluice.read.keyed import KeyedTable, Rows, check_limit
from sluice.read.lake import Lake
from sluice.read.naming import TIME, Given, key_values, not_so, values_of
from sluice.read.values import check

KEYS = ("key", "key_from", "key_to")
Time = datetime | str

NAMING_OPTIONS = {"time": TIME}
NEWEST = 12


class FetchOptions(TypedDict, total=False):
    """Options of every read: direction, limit, rows, columns, and where to continue.

    `after` is the previous page's cursor: the read continues after the last row of that page.
    """

    reverse: bool
    limit: int | None
    where: str | None
    columns: Iterable[str] | None
    after: str | None


class Times(FetchOptions, total=False):
    """Options of `FetchOptions`, plus two times, both included.

    `overlapping` selects windows that overlap the times, instead of those that begin between them.
    These windows begin by `time_to` and end after `time_from`.
    """

    time_from: Time | None
    time_to: Time | None
    overlapping: bool


@dataclass(frozen=True)
class ReadOnlyWindowStore:
    """One version of a window store: `table` holds its visible rows, `key_names` its key.

    `backward_iteration` lets a time range be given newest first, from a later to an earlier time.
    """

    table: KeyedTable
    key_names: tuple[str, ...]
    backward_iteration: bool = False
    newest: Callable[[], "ReadOnlyWindowStore"] | None = field(default=None, compare=False)

    def refresh(self) -> "ReadOnlyWindowStore":
        """Return the store at its newest version; this one and its results keep their version."""
        return self.newest() if self.newest else self

    @property
    def version(self) -> int:
        return self.table.version

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    @property
    def key(self) -> KeyColumns:
        """Key columns, without the time."""
        return KeyColumns.of(self.table.name, self.key_names, self.table.snapshot.schema)

    @property
    def order(self) -> tuple[str, ...]:
        """Window start, key, then the columns that distinguish duplicates."""
        return tuple(dict.fromkeys((START, *self.key_names, *self.table.identity)))

    def fetch(
        self, *, key: Key = None, key_from: Key = None, key_to: Key = None, **times: Unpack[Times]
    ) -> Rows:
        """Return the rows of one key, or of a range of keys, by window start.

        The range is from `key_from` to `key_to`. None means no bound: the null key is `(None,)`.
        """
        for name in times.keys() - Times.__annotations__:
            raise UsageError(f"fetch: {unknown('argument', name, [*KEYS, *Times.__annotations__])}")
        keys, limit = self._keys(key, key_from, key_to), check_limit(times.get("limit"))
        start, end = self._time(times.get("time_from")), self._time(times.get("time_to"))
        reverse = times.get("reverse", False)
        if start and end and start > end:
            start, end, reverse = end, start, True
            limit = limit if self.backward_iteration else 0
        between = self._between(start, end, overlapping=times.get("overlapping", False))
        return self.table.select(
            (*keys, *between),
            KeyOrder(self.order, reverse),
            times.get("where"),
            times.get("columns"),
            limit,
            times.get("after"),
        )

    def fetch_one(self, key: Key, time: Time) -> Row | None:
        """Return the row of that key and window start.

        If there are duplicates, the last one. A key of None means null.
        """
        if time is None:
            raise UsageError("fetch_one takes a key and a time; fetch(limit=1) finds the last")
        at = (None,) if key is None else key
        return next(self.fetch(key=at, time_from=time, time_to=time, reverse=True, limit=1), None)

    def fetch_all(self, **times: Unpack[Times]) -> Rows:
        """Return the rows of every key between two times."""
        return self.fetch(**times)

    def all(self, **how: Unpack[FetchOptions]) -> Rows:
        """Return every row, by window start."""
        return self.fetch(**how)

    def to_arrow(self) -> pa.Table:
        """Return every row, oldest first, as an Arrow table."""
        return self.all().to_arrow()

    def _keys(self, key: Key, key_from: Key, key_to: Key) -> tuple[KeyRange, ...]:
        if key is None:
            return self.key.between(key_from, key_to)
        if key_from is not None or key_to is not None:
            raise UsageError("fetch takes either key, or key_from and key_to")
        return (self.key.exactly(key),)

    def _between(
        self, start: Places | None, end: Places | None, *, overlapping: bool
    ) -> tuple[KeyRange, ...]:
        """Return the ranges of windows that begin between two times, or overlap them."""
        if not overlapping:
            return (KeyRange((START,), start, end),) if start or end else ()
        if END not in self.schema.names:
            raise UsageError(
                f"the windows of {self.table.name!r} have no end: they can't overlap a time",
                hint="declare `window`, or select window_end from an input that has it",
            )
        ends = (KeyRange((END,), low=start, is_open=True),) if start else ()
        return (*ends, *((KeyRange((START,), high=end),) if end else ()))

    def _time(self, time: Time | None) -> Places | None:
        if time is None:
            return None
        return places((check(time, self.table.snapshot.type_of(START), START),))


def window(lake: Lake, name: str, *, version: int | None = None) -> ReadOnlyWindowStore:
    """Open a window store for reading by key and time."""
    table, spec = lake.of_kind(name, WindowStore, "fetch")
    stored = lake.stored(table, version, backward_iteration=False)
    return ReadOnlyWindowStore(
        stored, spec.key, spec.backward_iteration, partial(window, lake, name)
    )


def find_ranges(table: KeyedTable, spec: WindowStore, given: Given) -> tuple[KeyRange, ...]:
    """Return the range of that key and time. Raises UsageError unless both are given."""
    if given.partition or {*given.others} != {*NAMING_OPTIONS} or not given.has_key:
        raise not_so(table, f"{' '.join(f'--key {name}=VALUE' for name in spec.key)} --time TIME")
    key = key_values(table, table.key.first(len(spec.key)), given)
    time = values_of(table, (START,), (given.others["time"],))
    return (only((*spec.key, START), (*key, *time)),)


def chapters(lake: Lake, table: Table, why: Address) -> Iterator[Chapter]:
    """Yield the newest rows."""
    rows = list(window(lake, table.id).all(reverse=True, limit=NEWEST))
    if rows:
        yield Chapter("Newest windows", [data(rows, list(rows[0]))])
