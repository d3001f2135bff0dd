"""Joins: by hashing the sides of equalities; the rest of the condition is computed on pairs."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql.connect import proto

from sluice.interpreter.expressions.compiling import (
    Bindings,
    RelationColumn,
    compile_node,
    every,
    find,
)
from sluice.interpreter.expressions.expression_tree import ColumnName, ExpressionNode, FunctionCall
from sluice.interpreter.functions.comparing import alike
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.relations.relation import Relation, keys_of
from sluice.interpreter.values.arrow_conversion import Values
from sluice.interpreter.values.casts import boolean
from sluice.interpreter.values.column_batch import ColumnBatch, Value

_KIND = proto.Join.JoinType
INNER = _KIND.JOIN_TYPE_INNER
LEFT, RIGHT = _KIND.JOIN_TYPE_LEFT_OUTER, _KIND.JOIN_TYPE_RIGHT_OUTER
FULL = _KIND.JOIN_TYPE_FULL_OUTER
SEMI, ANTI = _KIND.JOIN_TYPE_LEFT_SEMI, _KIND.JOIN_TYPE_LEFT_ANTI
MOST_PAIRS = 2_000_000


@dataclass(frozen=True)
class Equality:
    """Two expressions, one of each side, that must be equal; with nulls, if it is `<=>`."""

    left: Value
    right: Value
    with_nulls: bool
    places: tuple[int | None, int | None] = (None, None)  # of the columns that are compared


class Pairs(ColumnBatch):
    """Pairs of rows of two batches; None is a row of nulls."""

    def __init__(
        self,
        left: ColumnBatch,
        right: ColumnBatch,
        width: int,
        pairs: Sequence[tuple[int | None, int | None]],
    ) -> None:
        super().__init__(len(pairs), {})
        self._sides, self._width, self._pairs = (left, right), width, pairs

    def column(self, key: Hashable) -> Values:
        if key not in self._columns and isinstance(key, int):
            side = int(key >= self._width)
            values = self._sides[side].column(key - self._width * side)
            rows = [pair[side] for pair in self._pairs]
            self._columns[key] = [None if row is None else values[row] for row in rows]
        return super().column(key)


def join(left: Relation, right: Relation, kind: int, condition: ExpressionNode | None) -> Relation:
    """Return the rows of a join of that kind."""
    columns = (*left.columns, *right.columns)
    equalities, rest = _split_condition(condition, left.columns, right.columns)
    others = [boolean(compile_node(node, Bindings(columns))) for node in rest]

    def compute() -> ColumnBatch:
        a, b = _sides(left, right, kind, equalities)
        found = list(_matches(a, b, equalities))
        for other in others:
            holds = other.run(Pairs(a, b, len(left.columns), found))
            found = [pair for pair, is_so in zip(found, holds, strict=True) if is_so]
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
            relation = relation.narrow(place, _distinct(other, value)) or relation
    return relation


def _distinct(batch: ColumnBatch, value: Value) -> list[Any]:
    return list(dict.fromkeys(value.run(batch)))


def join_using(left: Relation, right: Relation, kind: int, names: Sequence[str]) -> Relation:
    """Return a join by columns of the same names, which the result has once."""
    if kind not in (INNER, LEFT, SEMI, ANTI):
        raise NotHere("a right or full join with USING")
    one, other = _give_alias(left, "_left"), _give_alias(right, "_right")
    pairs = [
        FunctionCall("==", (ColumnName(("_left", n)), ColumnName(("_right", n)))) for n in names
    ]
    condition: ExpressionNode = pairs[0]
    for pair in pairs[1:]:
        condition = FunctionCall("and", (condition, pair))
    joined = join(one, other, kind, condition)
    places = [find((n,), left.columns)[0] for n in names]
    again = {len(left.columns) + find((n,), right.columns)[0] for n in names}
    order = [*places, *(i for i in range(len(joined.columns)) if i not in {*places, *again})]
    all_ = (*left.columns, *right.columns)

    def compute() -> ColumnBatch:
        batch = joined.rows()
        return ColumnBatch(
            batch.count, {}, {to: partial(batch.column, at) for to, at in enumerate(order)}
        )

    return Relation(tuple(all_[i] for i in order), compute)


def _give_alias(relation: Relation, alias: str) -> Relation:
    return relation.renamed([RelationColumn(c.name, c.type, alias) for c in relation.columns])


def _split_condition(
    condition: ExpressionNode | None,
    left: Sequence[RelationColumn],
    right: Sequence[RelationColumn],
) -> tuple[list[Equality], list[ExpressionNode]]:
    """Return the equalities between the sides, and the other conditions."""
    equalities, rest = [], []
    for part in _conjuncts(condition):
        found = _equality(part, left, right)
        if found:
            equalities.append(found)
        else:
            rest.append(part)
    return equalities, rest


def _conjuncts(node: ExpressionNode | None) -> Iterator[ExpressionNode]:
    if isinstance(node, FunctionCall) and node.name == "and":
        for argument in node.arguments:
            yield from _conjuncts(argument)
    elif node is not None:
        yield node


def _equality(
    node: ExpressionNode, left: Sequence[RelationColumn], right: Sequence[RelationColumn]
) -> Equality | None:
    if not isinstance(node, FunctionCall) or node.name not in ("==", "=", "<=>"):
        return None
    sides = [_side(argument, left, right) for argument in node.arguments]
    if sorted(sides) != [0, 1]:
        return None
    one, other = node.arguments if sides == [0, 1] else reversed(node.arguments)
    values = compile_node(one, Bindings(left)), compile_node(other, Bindings(right))
    pair = alike(*values)
    places = (_place(one, left), _place(other, right)) if pair == values else (None, None)
    return Equality(*pair, with_nulls=node.name == "<=>", places=places)


def _place(node: ExpressionNode, columns: Sequence[RelationColumn]) -> int | None:
    """Return the number of a column that is the whole expression."""
    if not isinstance(node, ColumnName):
        return None
    at, rest = find(node.parts, columns)
    return None if rest else at


def _side(
    node: ExpressionNode, left: Sequence[RelationColumn], right: Sequence[RelationColumn]
) -> int:
    """Return 0 or 1 if all columns are of that side; -1 if they are of both, or none."""
    both = (*left, *right)
    sides = {find(p.parts, both)[0] >= len(left) for p in every(node) if isinstance(p, ColumnName)}
    return int(sides.pop()) if len(sides) == 1 else -1


def _matches(
    a: ColumnBatch, b: ColumnBatch, equalities: Sequence[Equality]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of rows for which the equalities hold."""
    if not equalities and a.count * b.count > MOST_PAIRS:
        raise NotHere("a join without equalities of too many rows")
    strict = [i for i, e in enumerate(equalities) if not e.with_nulls]
    by_key: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(keys_of(b, [e.right for e in equalities])):
        by_key.setdefault(key, []).append(row)
    for key in [k for k in by_key if None in k and any(k[i] is None for i in strict)]:
        del by_key[key]
    for row, key in enumerate(keys_of(a, [e.left for e in equalities])):
        for other in by_key.get(key, ()):
            yield row, other


def _shape(
    kind: int, a: ColumnBatch, b: ColumnBatch, width: int, found: list[tuple[int, int]]
) -> ColumnBatch:
    """Return the rows of a join of that kind for these pairs."""
    lefts = {i for i, _ in found}
    if kind in (SEMI, ANTI):
        return a.take([i for i in range(a.count) if (i in lefts) == (kind == SEMI)])
    pairs: list[tuple[int | None, int | None]] = list(found)
    if kind in (LEFT, FULL):
        pairs += [(i, None) for i in range(a.count) if i not in lefts]
    if kind in (RIGHT, FULL):
        rights = {j for _, j in found}
        pairs += [(None, j) for j in range(b.count) if j not in rights]
    return Pairs(a, b, width, pairs)
