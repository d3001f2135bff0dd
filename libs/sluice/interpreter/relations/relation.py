"""Relations: rows with named columns, computed when they are first read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import pyarrow as pa
from pyspark.sql import types as T

from sluice.interpreter.expressions.compiling import RelationColumn
from sluice.interpreter.values.column_batch import ColumnBatch

Narrow = Callable[[int, Sequence[Any]], Optional["Relation"]]


@dataclass
class Relation:
    """Columns, and the function that computes their rows; they are kept once computed.

    A column may be computed only when it is first read.

    `narrow`, if known, takes the number of a column and values. It returns a cheaper relation that
    has at least the rows with these values; None if it can't by that column.

    `stored`: the same rows in Arrow, if they are in memory.
    """

    columns: tuple[RelationColumn, ...]
    compute: Callable[[], ColumnBatch]
    narrow: Narrow | None = None
    stored: pa.Table | None = None
    _rows: ColumnBatch | None = field(default=None, init=False)

    def rows(self) -> ColumnBatch:
        """Return the rows; the keys of their columns are numbers."""
        if self._rows is None:
            self._rows = self.compute()
        return self._rows

    def whole(self) -> ColumnBatch:
        """Return the rows, with all columns computed."""
        batch = self.rows()
        for number in range(len(self.columns)):
            batch.column(number)
        return batch

    @property
    def schema(self) -> T.StructType:
        """Names and types of the columns."""
        return T.StructType([T.StructField(c.name, c.type) for c in self.columns])

    def renamed(self, columns: Sequence[RelationColumn]) -> "Relation":
        """Return the same rows under other names."""
        named = tuple(columns)
        return Relation(named, self.rows, self.through(lambda less: less.renamed(named)))

    def through(
        self, again: Callable[["Relation"], "Relation"], places: Sequence[int | None] | None = None
    ) -> Narrow | None:
        """Return how to narrow a relation that `again` computes from this one, row by row.

        `places`: for each of its columns, the number of this one's column that it shows.
        """
        narrow = self.narrow
        if narrow is None:
            return None

        def narrowed(at: int, values: Sequence[Any]) -> Relation | None:
            own = at if places is None else places[at]
            less = None if own is None else narrow(own, values)
            return None if less is None else again(less)

        return narrowed
