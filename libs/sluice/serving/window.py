"""A window store: rows by key and event time, read forward or newest first, without Spark.

Rows are ordered by window start, and within one start by key; reverse is the exact mirror. Bounds
are inclusive. A store with a retention shows a row only while its window start is later than the
horizon less the retention, also before its file is dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from sluice.errors import UsageError
from sluice.serving.keyed import KeyedTable
from sluice.serving.keys import Key, KeyColumns
from sluice.serving.order import Order, Places, Span, places
from sluice.serving.rows import Row, Rows, check_limit
from sluice.serving.values import check
from sluice.specs.interval import Duration

TIME = "window_start"
Time = datetime | str


def visible_span(horizon: datetime | None, retention: Duration | None) -> tuple[Span, ...]:
    """The span of the window starts that a store with that retention shows."""
    if horizon is None or retention is None:
        return ()
    earliest = retention.before(horizon) + timedelta(microseconds=1)
    return (Span((TIME,), places((earliest,))),)


@dataclass(frozen=True)
class WindowStore:
    """One version of a window store: `table` holds its visible rows, `key_names` its key.

    `backward_iteration` lets a time range be given newest first, from a later to an earlier time.
    """

    table: KeyedTable
    key_names: tuple[str, ...]
    backward_iteration: bool = False

    @property
    def version(self) -> int:
        return self.table.version

    @property
    def schema(self) -> pa.Schema:
        """The visible columns."""
        return self.table.schema

    @property
    def key(self) -> KeyColumns:
        """The key columns, without the time."""
        return KeyColumns.of(self.table.name, self.key_names, self.table.snapshot.schema)

    @property
    def order(self) -> tuple[str, ...]:
        """Window start, key, then what tells duplicates apart."""
        return tuple(dict.fromkeys((TIME, *self.key_names, *self.table.identity)))

    def fetch(  # noqa: PLR0913 - each is one independent part of the question
        self,
        *,
        key: Key = None,
        key_from: Key = None,
        key_to: Key = None,
        time_from: Time | None = None,
        time_to: Time | None = None,
        reverse: bool = False,
        limit: int | None = None,
        where: str | None = None,
        columns: Iterable[str] | None = None,
    ) -> Rows:
        """The rows of one key, or of the keys from `key_from` to `key_to`, by window start."""
        limit, keys = check_limit(limit), self._keys(key, key_from, key_to)
        start, end = self._time(time_from), self._time(time_to)
        if start and end and start > end:
            start, end, reverse = end, start, True
            limit = limit if self.backward_iteration else 0
        times = (Span((TIME,), start, end),) if start or end else ()
        return self.table.select((*keys, *times), Order(self.order, reverse), where, columns, limit)

    def fetch_one(self, key: Key, time: Time) -> Row | None:
        """The row of that key and window start; of duplicates, the last."""
        return next(self.fetch(key=key, time_from=time, time_to=time, reverse=True, limit=1), None)

    def fetch_all(
        self,
        *,
        time_from: Time | None = None,
        time_to: Time | None = None,
        reverse: bool = False,
        limit: int | None = None,
        where: str | None = None,
        columns: Iterable[str] | None = None,
    ) -> Rows:
        """The rows of every key between two times."""
        return self.fetch(
            time_from=time_from,
            time_to=time_to,
            reverse=reverse,
            limit=limit,
            where=where,
            columns=columns,
        )

    def all(
        self,
        *,
        reverse: bool = False,
        limit: int | None = None,
        where: str | None = None,
        columns: Iterable[str] | None = None,
    ) -> Rows:
        """Every row, by window start."""
        return self.fetch(reverse=reverse, limit=limit, where=where, columns=columns)

    def to_arrow(self) -> pa.Table:
        """Every row, oldest first, as an Arrow table."""
        return self.all().to_arrow()

    def _keys(self, key: Key, key_from: Key, key_to: Key) -> tuple[Span, ...]:
        if key is None:
            return self.key.between(key_from, key_to)
        if key_from is not None or key_to is not None:
            raise UsageError("fetch takes either key, or key_from and key_to")
        return (self.key.exactly(key),)

    def _time(self, time: Time | None) -> Places | None:
        if time is None:
            return None
        return places((check(time, self.table.snapshot.kind(TIME), TIME),))
