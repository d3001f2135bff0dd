"""Relations: rows with named columns, computed when they are first read."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Optional

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import types as T

from sluice.interpreter.expressions.compiling import Bindings, RelationColumn, compile_node
from sluice.interpreter.expressions.expression_tree import SortItem
from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.arrow_conversion import Values, to_arrow
from sluice.interpreter.values.column_batch import ColumnBatch, Same, Value, hold
from sluice.interpreter.values.numbering import KeyOf, combine, number_values, rank_values
from sluice.interpreter.values.value_order import key_of
from sluice.interpreter.values.value_types import plain

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
        return T.StructType([T.StructField(c.name, c.type) for c in self.columns])

    def renamed(self, columns: Sequence[RelationColumn]) -> "Relation":
        """Return the same rows under other names."""
        named = tuple(columns)
        return Relation(named, self.rows, self.through(lambda less: less.renamed(named)))

    def under(self, alias: str) -> "Relation":
        """Return the same rows under an alias."""
        return self.renamed([RelationColumn(c.name, c.type, alias) for c in self.columns])

    def choose(
        self, places: Sequence[int | None], columns: Sequence[RelationColumn] | None = None
    ) -> "Relation":
        """Return columns by number, in this order; None is one of nulls. `columns`: their names."""

        def compute() -> ColumnBatch:
            batch = self.rows()

            def read(place: int | None) -> Values:
                return Same(None, batch.count) if place is None else batch.column(place)

            return ColumnBatch(batch.count, {}, {i: partial(read, p) for i, p in enumerate(places)})

        chosen = columns or [self.columns[p] for p in places if p is not None]
        return Relation(tuple(chosen), compute)

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


@dataclass(frozen=True)
class CompiledSortItem:
    """One item of an order, compiled."""

    value: Value
    descending: bool
    nulls_first: bool

    @classmethod
    def of(cls, order: SortItem, bindings: Bindings) -> "CompiledSortItem":
        return cls(compile_node(order.child, bindings), order.descending, order.nulls_first)

    def ranks(self, batch: ColumnBatch) -> list[np.ndarray]:
        """Return numbers of the rows that are in this order, the most significant first."""
        numbers, nulls = rank_values(self.value.run(batch), self.value.type)
        numbers = ~numbers if self.descending else numbers
        return [nulls != self.nulls_first, numbers] if nulls.any() else [numbers]


def refuse_place(values: Sequence[Value]) -> None:
    """Refuse an integer constant, which Spark reads as the number of a column."""
    if any(v.is_literal and isinstance(v.type, T.IntegerType) for v in values):
        raise UnsupportedLocally("GROUP BY or ORDER BY with the number of a column")


def sort_rows(ranks: Sequence[np.ndarray]) -> np.ndarray:
    """Return the rows in order of their numbers; those that tie keep their order."""
    return np.lexsort(ranks[::-1])


def number_rows(batch: ColumnBatch, values: Sequence[Value], how: KeyOf = key_of) -> np.ndarray:
    """Return a number for each row's values: from 0 on, in the order of the first."""
    return combine([number_values(v.run(batch), v.type, how) for v in values], batch.count)


NARROWED_ROWS = 1_000  # smaller tables are read whole
# Statistics of texts are views in files of delta-rs; Arrow fails to compare these with plain texts.
LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
UNNARROWED = (T.ArrayType, T.StructType, T.MapType, T.DoubleType, T.FloatType)


def of_dataset(stored: ds.Dataset, schema: T.StructType, most: int) -> Relation:
    """Return stored rows as a relation that can be narrowed; more than `most` are left to Spark."""
    columns = tuple(RelationColumn(f.name, plain(f.dataType)) for f in schema.fields)
    return _where(stored, columns, most, None)


def _where(
    stored: ds.Dataset, columns: tuple[RelationColumn, ...], most: int, met: pc.Expression | None
) -> Relation:
    """Return the stored rows that meet a condition; each narrowing adds another one."""

    def read() -> ColumnBatch:
        return _few(stored.to_table(columns=[c.name for c in columns], filter=met), columns, most)

    def narrow(at: int, values: Sequence[Any]) -> Relation | None:
        if isinstance(columns[at].type, UNNARROWED):
            return None
        given = to_arrow([v for v in values if v is not None], columns[at].type)
        field = pc.field(columns[at].name)
        other = LARGE.get(given.type)
        where = field.cast(other).isin(given.cast(other)) if other else field.isin(given)
        if None in values:
            where |= field.is_null()
        return _where(stored, columns, most, where if met is None else met & where)

    return Relation(columns, read, narrow)


def of_arrow(rows: pa.Table, schema: T.StructType, most: int) -> Relation:
    """Return rows in memory as a relation; a large one can be narrowed, too."""
    if rows.num_rows > NARROWED_ROWS:
        return replace(of_dataset(ds.dataset(rows), schema, most), stored=rows)
    columns = tuple(RelationColumn(f.name, plain(f.dataType)) for f in schema.fields)
    return Relation(columns, lambda: _few(rows, columns, most), stored=rows)


def _few(rows: pa.Table, columns: Sequence[RelationColumn], most: int) -> ColumnBatch:
    """Return rows; a column is converted when it is first read."""
    if rows.num_rows > most:
        raise UnsupportedLocally(f"{rows.num_rows:,} rows of a table")

    later: dict[Hashable, Callable[[], Values]] = {
        i: partial(hold, rows.column(i), c.type) for i, c in enumerate(columns)
    }
    return ColumnBatch(rows.num_rows, {}, later)
