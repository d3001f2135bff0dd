"""Relations: plans read from the protocol, and the rows of joins, groups, orders and windows.

A relation has rows with named columns, which are computed when they are first read. Two are joined
by hashing the sides of equalities; the rest of the condition is computed on pairs.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Optional

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import types as T
from pyspark.sql.connect import proto

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter import expressions as E
from sluice.interpreter.expressions import SortItem
from sluice.interpreter.expressions.compiling import (
    Bindings,
    RelationColumn,
    compile_node,
    every,
    find,
)
from sluice.interpreter.functions.comparing import alike
from sluice.interpreter.values import Values, as_nullable
from sluice.interpreter.values.casts import boolean
from sluice.interpreter.values.column_batch import (
    ColumnBatch,
    Same,
    Value,
    column_of,
    concatenate,
    hold,
    null_mask,
    take_rows,
    true_mask,
)
from sluice.interpreter.values.numbering import KeyOf, combine, key_of, number_values, rank_values

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
    columns = tuple(RelationColumn(f.name, as_nullable(f.dataType)) for f in schema.fields)
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
    columns = tuple(RelationColumn(f.name, as_nullable(f.dataType)) for f in schema.fields)
    return Relation(columns, lambda: _hold(rows, columns), stored=rows)


def _hold(rows: pa.Table, columns: Sequence[RelationColumn]) -> ColumnBatch:
    """Return rows; a column is converted when it is first read."""
    later: dict[Hashable, Callable[[], Values]] = {
        i: partial(hold, rows.column(i), c.type) for i, c in enumerate(columns)
    }
    return ColumnBatch(rows.num_rows, {}, later)


_KIND = proto.Join.JoinType
INNER = _KIND.JOIN_TYPE_INNER
LEFT, RIGHT = _KIND.JOIN_TYPE_LEFT_OUTER, _KIND.JOIN_TYPE_RIGHT_OUTER
FULL = _KIND.JOIN_TYPE_FULL_OUTER
SEMI, ANTI = _KIND.JOIN_TYPE_LEFT_SEMI, _KIND.JOIN_TYPE_LEFT_ANTI
MOST_PAIRS = 2_000_000  # without equalities
MATCH_BYTES = 48  # of what rows of tables may take, for each pair by equalities


@dataclass(frozen=True)
class Equality:
    """Two expressions, one of each side, that must be equal; with nulls, if it is `<=>`."""

    left: Value
    right: Value
    with_nulls: bool
    places: tuple[int | None, int | None] = (None, None)  # of the columns that are compared


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows of two sides by number; -1 is a row of nulls."""

    left: np.ndarray
    right: np.ndarray

    def keep(self, wanted: np.ndarray) -> "Pairs":
        return Pairs(self.left[wanted], self.right[wanted])


class PairedRows(ColumnBatch):
    """The columns of both sides of pairs; `width`: the number of the left side's."""

    def __init__(self, left: ColumnBatch, right: ColumnBatch, width: int, pairs: Pairs) -> None:
        super().__init__(len(pairs.left), {})
        self._left, self._right, self._width, self._pairs = left, right, width, pairs

    def column(self, key: Hashable) -> Values:
        if key not in self._columns and isinstance(key, int):
            self._columns[key] = (
                take_rows(self._left.column(key), self._pairs.left)
                if key < self._width
                else take_rows(self._right.column(key - self._width), self._pairs.right)
            )
        return super().column(key)


def join(
    left: Relation, right: Relation, kind: int, condition: E.ExpressionNode | None, budget: Budget
) -> Relation:
    """Return the rows of a join of that kind; pairs by equalities are limited by the budget."""
    columns = (*left.columns, *right.columns)
    parts = [(part, _equality(part, left.columns, right.columns)) for part in _conjuncts(condition)]
    equalities = [found for _, found in parts if found]
    rest = [part for part, found in parts if not found]
    others = [boolean(compile_node(node, Bindings(columns))) for node in rest]

    def compute() -> ColumnBatch:
        a, b = _sides(left, right, kind, equalities)
        if kind in (SEMI, ANTI) and equalities and not others:
            of_left, of_right = _keys(a, b, equalities)
            return _keep_met(kind, a, np.isin(of_left, of_right[of_right > 0]))
        found = _match(a, b, equalities, budget.most // MATCH_BYTES)
        for other in others:
            found = found.keep(true_mask(other.run(PairedRows(a, b, len(left.columns), found))))
        return _shape(kind, a, b, len(left.columns), found)

    return Relation(left.columns if kind in (SEMI, ANTI) else columns, compute)


def _sides(
    left: Relation, right: Relation, kind: int, equalities: Sequence[Equality]
) -> tuple[ColumnBatch, ColumnBatch]:
    """Return both sides' rows; of one that can be narrowed, only those that may match."""
    of_left = [(e.places[0], e.right) for e in equalities if e.places[0] is not None]
    of_right = [(e.places[1], e.left) for e in equalities if e.places[1] is not None]
    if left.narrow and of_left and kind in (INNER, SEMI, RIGHT):
        b = right.rows()
        return _narrow(left, b, of_left).rows(), b
    a = left.rows()
    if right.narrow and of_right and kind in (INNER, LEFT, SEMI, ANTI):
        return a, _narrow(right, a, of_right).rows()
    return a, right.rows()


def _narrow(relation: Relation, other: ColumnBatch, by: Sequence[tuple[int, Value]]) -> Relation:
    """Return at least the rows that match the other side's in all columns that are compared."""
    for place, value in by:
        if relation.narrow:
            distinct = pc.unique(column_of(value.run(other), value.type))
            relation = relation.narrow(place, distinct) or relation
    return relation


def join_using(
    left: Relation, right: Relation, kind: int, names: Sequence[str], budget: Budget
) -> Relation:
    """Return a join by columns of the same names, which the result has once."""
    if kind not in (INNER, LEFT, SEMI, ANTI):
        raise UnsupportedLocally("a right or full join with USING")
    pairs = [
        E.FunctionCall("==", (E.ColumnName(("_left", n)), E.ColumnName(("_right", n))))
        for n in names
    ]
    condition = reduce(lambda a, b: E.FunctionCall("and", (a, b)), pairs)
    joined = join(left.under("_left"), right.under("_right"), kind, condition, budget)
    places = [find((n,), left.columns)[0] for n in names]
    again = {len(left.columns) + find((n,), right.columns)[0] for n in names}
    order = [*places, *(i for i in range(len(joined.columns)) if i not in {*places, *again})]
    columns = (*left.columns, *right.columns)
    return joined.choose(order, [columns[i] for i in order])


def _conjuncts(node: E.ExpressionNode | None) -> Iterator[E.ExpressionNode]:
    if isinstance(node, E.FunctionCall) and node.name == "and":
        for argument in node.arguments:
            yield from _conjuncts(argument)
    elif node is not None:
        yield node


def _equality(
    node: E.ExpressionNode, left: Sequence[RelationColumn], right: Sequence[RelationColumn]
) -> Equality | None:
    if not isinstance(node, E.FunctionCall) or node.name not in ("==", "=", "<=>"):
        return None
    sides = [_side(argument, left, right) for argument in node.arguments]
    if sorted(sides) != [0, 1]:
        return None
    one, other = node.arguments if sides == [0, 1] else reversed(node.arguments)
    values = compile_node(one, Bindings(left)), compile_node(other, Bindings(right))
    pair = alike(*values)
    places = (place_of(one, left), place_of(other, right)) if pair == values else (None, None)
    return Equality(*pair, with_nulls=node.name == "<=>", places=places)


def place_of(node: E.ExpressionNode, columns: Sequence[RelationColumn]) -> int | None:
    """Return the number of the column if an expression is only that."""
    match node:
        case E.Alias():
            return place_of(node.child, columns)
        case E.ColumnNumber():
            return node.number
        case E.ColumnName():
            at, rest = find(node.parts, columns)
            return None if rest else at
        case E.Convert():
            child = place_of(node.child, columns)
            return child if child is not None and columns[child].type == node.type else None
    return None


def _side(
    node: E.ExpressionNode, left: Sequence[RelationColumn], right: Sequence[RelationColumn]
) -> int:
    """Return 0 or 1 if all columns are of that side; -1 if they are of both, or none."""
    both = (*left, *right)
    sides = {
        find(p.parts, both)[0] >= len(left) for p in every(node) if isinstance(p, E.ColumnName)
    }
    return int(sides.pop()) if len(sides) == 1 else -1


def _keys(
    a: ColumnBatch, b: ColumnBatch, equalities: Sequence[Equality]
) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each row of both sides, equal if they match; 0 matches nothing."""
    numbers, nulls = [], np.zeros(a.count + b.count, bool)
    for equality in equalities:
        type_ = equality.left.type
        both = concatenate([equality.left.run(a), equality.right.run(b)], type_)
        numbers.append(number_values(both, type_))
        if not equality.with_nulls:
            nulls |= null_mask(both)
    keys = combine(numbers, len(nulls)) + 1
    keys[nulls] = 0
    return keys[: a.count], keys[a.count :]


def _match(a: ColumnBatch, b: ColumnBatch, equalities: Sequence[Equality], most: int) -> Pairs:
    """Return the pairs of rows for which the equalities hold, in the order of both sides."""
    if not equalities and a.count * b.count > MOST_PAIRS:
        raise UnsupportedLocally("a join without equalities of too many rows")
    of_left, of_right = _keys(a, b, equalities)
    by_key = np.argsort(of_right, kind="stable")
    sizes = np.bincount(of_right, minlength=int(of_left.max(initial=0)) + 1)
    firsts = (np.cumsum(sizes) - sizes)[of_left]
    sizes[0] = 0
    counts = sizes[of_left]
    if counts.sum() > most:
        raise UnsupportedLocally("a join with too many rows")
    nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return Pairs(np.repeat(np.arange(a.count), counts), by_key[np.repeat(firsts, counts) + nth])


def _shape(kind: int, a: ColumnBatch, b: ColumnBatch, width: int, found: Pairs) -> ColumnBatch:
    """Return the rows of a join of that kind for these pairs."""
    if kind in (SEMI, ANTI):
        return _keep_met(kind, a, _met(a, found.left))
    left, right = [found.left], [found.right]
    if kind in (LEFT, FULL):
        left.append(np.flatnonzero(~_met(a, found.left)))
        right.append(np.full(len(left[-1]), -1))
    if kind in (RIGHT, FULL):
        right.append(np.flatnonzero(~_met(b, found.right)))
        left.append(np.full(len(right[-1]), -1))
    return PairedRows(a, b, width, Pairs(np.concatenate(left), np.concatenate(right)))


def _met(side: ColumnBatch, numbers: np.ndarray) -> np.ndarray:
    """Return for each row of a side if its number is among these."""
    met = np.zeros(side.count, bool)
    met[numbers] = True
    return met


def _keep_met(kind: int, a: ColumnBatch, met: np.ndarray) -> ColumnBatch:
    return a.take(np.flatnonzero(met == (kind == SEMI)))
