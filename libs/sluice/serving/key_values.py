"""What every table that is read by its key can do, wherever its rows come from."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from sluice.serving.keys import Key, KeyColumns
from sluice.serving.order import Span
from sluice.serving.rows import Row, Rows


class KeyValues(ABC):
    """Reads in key order: a range, everything, and both the other way round."""

    backward_iteration: bool

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that it was opened by."""

    @property
    @abstractmethod
    def version(self) -> int:
        """The version whose rows these are."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The visible columns."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many rows are visible."""

    @property
    @abstractmethod
    def stored(self) -> list[str]:
        """The stored tables whose rows these are."""

    @abstractmethod
    def get(self, *key: Any) -> Row | None:
        """The row of that key, None if there is none."""

    @abstractmethod
    def read(
        self,
        *,
        where: str | None = None,
        limit: int | None = None,
        columns: Iterable[str] | None = None,
    ) -> Rows:
        """Rows as they are stored."""

    @property
    @abstractmethod
    def key(self) -> KeyColumns:
        """The key columns that a reader can name."""

    @abstractmethod
    def between(
        self,
        spans: tuple[Span, ...],
        *,
        reverse: bool,
        limit: int | None,
        where: str | None,
        columns: Iterable[str] | None,
        after: str | None,
    ) -> Rows:
        """The rows in these spans of keys, in key order, behind the cursor `after`."""

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
        """The rows from `key_from` to `key_to`, both included, in key order.

        `after`: behind the last row of a page that another read gave, by its `cursor`.
        """
        if self.backward_iteration and self.key.are_backward(key_from, key_to):
            key_from, key_to, reverse = key_to, key_from, True
        spans = self.key.between(key_from, key_to)
        return self.between(
            spans, reverse=reverse, limit=limit, where=where, columns=columns, after=after
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
        """Every row in key order."""
        return self.range(reverse=reverse, limit=limit, where=where, columns=columns, after=after)

    def to_arrow(self) -> pa.Table:
        """Every row, in key order, as an Arrow table."""
        return self.all().to_arrow()
