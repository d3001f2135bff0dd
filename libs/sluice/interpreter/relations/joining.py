"""Joins: by hashing the sides of equalities; the rest of the condition is computed on pairs."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow.compute as pc
from pyspark.sql.connect import proto

from sluice.interpreter.expressions import expression_tree as E
from sluice.interpreter.expressions.compiling import (
    Bindings,
    RelationColumn,
    compile_node,
    every,
    find,
)
from sluice.interpreter.functions.comparing import alike
from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.relations.relation import Budget, Relation
from sluice.interpreter.values.arrow_conversion import Values
from sluice.interpreter.values.casts import boolean
from sluice.interpreter.values.column_batch import (
    ColumnBatch,
    Value,
    column_of,
    concatenate,
    null_mask,
    take_rows,
    true_mask,
)
from sluice.interpreter.values.numbering import combine, number_values

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
    places = (_place(one, left), _place(other, right)) if pair == values else (None, None)
    return Equality(*pair, with_nulls=node.name == "<=>", places=places)


def _place(node: E.ExpressionNode, columns: Sequence[RelationColumn]) -> int | None:
    """Return the number of a column that is the whole expression."""
    if not isinstance(node, E.ColumnName):
        return None
    at, rest = find(node.parts, columns)
    return None if rest else at


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
