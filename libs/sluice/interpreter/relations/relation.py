"""Relations: rows with named columns, computed when they are first read."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Optional

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import types as T

from sluice.interpreter.expressions.compiling import Bindings, RelationColumn, compile_node
from sluice.interpreter.expressions.expression_tree import SortItem
from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.arrow_conversion import Values
from sluice.interpreter.values.column_batch import ColumnBatch, Same, Value, hold
from sluice.interpreter.values.numbering import KeyOf, combine, key_of, number_values, rank_values
from sluice.interpreter.values.value_types import plain

Narrow = Callable[[int, pa.Array], Optional["Relation"]]


@dataclass
class Budget:
    """Bytes of Arrow that rows of tables may take in a session until they are dropped."""

    most: int
    taken: int = 0

    def take(self, count: int) -> None:
        """Add bytes that are held from here on. Raises UnsupportedLocally if they are too many."""
        self.taken += count
        if self.taken > self.most:
            raise UnsupportedLocally(f"more than {self.most / 1e6:,.1f} MB of rows in memory")


@dataclass
class Relation:
    """Columns, and the function that computes their rows; they are kept once computed.

    A column may be computed only when it is first read.

    `narrow`, if known, takes the number of a column and distinct values. It returns a cheaper
    relation that has at least the rows with these values; None if it can't by that column.

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

    def drop(self) -> None:
        """Drop rows that were read from files."""
        if self.stored is None:
            self._rows = None

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

        def narrowed(at: int, values: pa.Array) -> Relation | None:
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
    """Return the rows in order of their numbers; those that tie keep their order.

    Numbers that fit together in 64 bits are sorted as one.
    """
    keys, room = list[np.ndarray](), 0
    for rank in ranks:
        least, most = (int(end) for end in (rank.min(initial=0), rank.max(initial=0)))
        width = most - least + 1
        if width < 2**63:
            rank = rank.astype(np.int64) - least  # noqa: PLW2901
        if keys and 0 < room * width < 2**63:
            keys[-1], room = keys[-1] * width + rank, room * width
        else:
            keys.append(rank)
            room = width
    return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])


def number_rows(batch: ColumnBatch, values: Sequence[Value], how: KeyOf = key_of) -> np.ndarray:
    """Return a number for each row's values: from 0 on, in the order of the first."""
    return combine([number_values(v.run(batch), v.type, how) for v in values], batch.count)


NARROWED_ROWS = 1_000  # smaller tables are read whole
# Statistics of texts are views in files of delta-rs; Arrow fails to compare these with plain texts.
LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
UNNARROWED = (T.ArrayType, T.StructType, T.MapType, T.DoubleType, T.FloatType)


def of_dataset(stored: ds.Dataset, schema: T.StructType, budget: Budget) -> Relation:
    """Return stored rows as a relation that can be narrowed."""
    columns = tuple(RelationColumn(f.name, plain(f.dataType)) for f in schema.fields)
    return _where(stored, columns, budget, None)


def _where(
    stored: ds.Dataset,
    columns: tuple[RelationColumn, ...],
    budget: Budget,
    met: pc.Expression | None,
) -> Relation:
    """Return the stored rows that meet a condition; each narrowing adds another one."""
    names = [c.name for c in columns]

    def read() -> ColumnBatch:
        pages = list[pa.RecordBatch]()
        for page in stored.to_batches(columns=names, filter=met):
            budget.take(page.nbytes)
            pages.append(page)
        types = pages[0].schema if pages else pa.schema([stored.schema.field(n) for n in names])
        return _hold(pa.Table.from_batches(pages, types), columns)

    def narrow(at: int, values: pa.Array) -> Relation | None:
        if isinstance(columns[at].type, UNNARROWED):
            return None
        given, field = values.drop_null(), pc.field(columns[at].name)
        other = LARGE.get(given.type)
        where = field.cast(other).isin(given.cast(other)) if other else field.isin(given)
        if values.null_count:
            where |= field.is_null()
        return _where(stored, columns, budget, where if met is None else met & where)

    return Relation(columns, read, narrow)


def of_arrow(rows: pa.Table, schema: T.StructType, budget: Budget) -> Relation:
    """Return rows in memory as a relation; a large one can be narrowed, too."""
    if rows.num_rows > NARROWED_ROWS:
        return replace(of_dataset(ds.dataset(rows), schema, budget), stored=rows)
    columns = tuple(RelationColumn(f.name, plain(f.dataType)) for f in schema.fields)
    return Relation(columns, lambda: _hold(rows, columns), stored=rows)


def _hold(rows: pa.Table, columns: Sequence[RelationColumn]) -> ColumnBatch:
    """Return rows; a column is converted when it is first read."""
    later: dict[Hashable, Callable[[], Values]] = {
        i: partial(hold, rows.column(i), c.type) for i, c in enumerate(columns)
    }
    return ColumnBatch(rows.num_rows, {}, later)
