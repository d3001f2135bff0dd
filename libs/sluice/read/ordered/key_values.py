"""Interface of every table that is read by its key."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from sluice.language.row import Row
from sluice.read.conditions.key_order import KeyRange
from sluice.read.conditions.keys import Key, KeyColumns
from sluice.read.ordered.rows import Rows


class KeyValues(ABC):
    """Reads in key order: a range or everything, forward or reversed."""

    backward_iteration: bool

    @property
    @abstractmethod
    def name(self) -> str:
        """Name that the table was opened by."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Version of these rows."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Schema of the visible columns."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of visible rows."""

    @property
    @abstractmethod
    def stored(self) -> list[str]:
        """Stored tables that hold these rows."""

    @abstractmethod
    def get(self, *key: Any, **named: Any) -> Row | None:
        """Return the row of that key, given in order or by columns; None if there is none."""

    @abstractmethod
    def read(
        self,
        *,
        where: str | None = None,
        limit: int | None = None,
        columns: Iterable[str] | None = None,
    ) -> Rows:
        """Return rows in no particular order."""

    @property
    @abstractmethod
    def key(self) -> KeyColumns:
        """Key columns that a reader can name."""

    @property
    def row_key(self) -> KeyColumns:
        """Key columns of one row. Raises UsageError if rows differ only in hidden columns."""
        return self.key

    @property
    def leading(self) -> tuple[str, ...]:
        """Columns that identify a row, which people see first."""
        return self.key.names

    @abstractmethod
    def between(
        self,
        ranges: tuple[KeyRange, ...],
        *,
        reverse: bool,
        limit: int | None,
        where: str | None,
        columns: Iterable[str] | None,
        after: str | None,
    ) -> Rows:
        """Return the rows in these ranges of keys, in key order, after the cursor `after`."""

    def range(
        self,
        *,
        key_from: Key = None,
        key_to: Key = None,
        reverse: bool = False,
        limit: int | None = None,
        where: str | None = None,
        columns: Iterable[str] | None = None,
        after: str | None = None,
    ) -> Rows:
        """Return the rows from `key_from` to `key_to`, both included, in key order.

        `after`: the `cursor` of another read, to start after the last row of its page.
        """
        if self.backward_iteration and self.key.are_backward(key_from, key_to):
            key_from, key_to, reverse = key_to, key_from, True
        ranges = self.key.between(key_from, key_to)
        return self.between(
            ranges, reverse=reverse, limit=limit, where=where, columns=columns, after=after
        )

    def all(
        self,
        *,
        reverse: bool = False,
        limit: int | None = None,
        where: str | None = None,
        columns: Iterable[str] | None = None,
        after: str | None = None,
    ) -> Rows:
        """Return every row in key order."""
        return self.range(reverse=reverse, limit=limit, where=where, columns=columns, after=after)

    def to_arrow(self) -> pa.Table:
        """Return every row, in key order, as an Arrow table."""
        return self.all().to_arrow()
