"""NOT IN of several columns, by SQL's rule for nulls.

`(a, b) NOT IN S` is true if each row of S differs from it in a column that both have. So no row of
S may be equal in some columns if all other columns are null in either row.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations

from sqlglot import exp

from sluice.kinds.sql.reading.trees import both
from sluice.language.syntax import Tree

NAMES = ("a", "b", "c", "d")  # of the subquery's columns


def not_among(values: Sequence[Tree], rows: str) -> Iterator[Tree]:
    """Yield the conditions that together are NOT IN. `rows`: name of a shared query."""
    pairs = [(v, exp.column(n, rows)) for v, n in zip(values, NAMES, strict=False)]
    for equal in _parts(pairs):
        others = [pair for pair in pairs if pair not in equal]
        if equal:
            same = [exp.EQ(this=value.copy(), expression=mine.copy()) for value, mine in equal]
            either = [_either_null(value, mine) for value, mine in others]
            yield exp.Not(this=_exists(rows, [*same, *either]))
            continue
        for absent in _parts(pairs):
            outer = [_null(value) for value, mine in pairs if (value, mine) not in absent]
            some = _exists(rows, [_null(mine) for _, mine in absent])
            yield exp.Not(this=exp.Paren(this=both([*outer, some])))


def _parts(pairs: Sequence[tuple[Tree, Tree]]) -> Iterator[tuple[tuple[Tree, Tree], ...]]:
    return chain.from_iterable(combinations(pairs, size) for size in range(len(pairs) + 1))


def _exists(rows: str, conditions: list[Tree]) -> Tree:
    table = exp.Table(
        this=exp.to_identifier(rows), alias=exp.TableAlias(this=exp.to_identifier(rows))
    )
    where = exp.Where(this=both(conditions)) if conditions else None
    shown = [exp.alias_(exp.Literal.number(1), "one")]
    return exp.Exists(this=exp.Select(expressions=shown, from_=exp.From(this=table), where=where))


def _null(tree: Tree) -> Tree:
    return exp.Is(this=tree.copy(), expression=exp.Null())


def _either_null(one: Tree, other: Tree) -> Tree:
    return exp.Paren(this=exp.Or(this=_null(one), expression=_null(other)))
