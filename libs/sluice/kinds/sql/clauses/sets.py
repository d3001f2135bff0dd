"""Set operations: rows of both sides together, and rows counted by the side that has them."""

from sqlglot import exp

from sluice.kinds.sql.reading.trees import Refused
from sluice.kinds.sql.relations.chain import Chain
from sluice.kinds.sql.relations.sources import (
    AnyRows,
    Branch,
    DistinctRows,
    ExplodedRows,
    Grouped,
    QueryRows,
    Together,
    renamed,
)
from sluice.language.syntax import Tree


def set_of(chain: Chain, tree: exp.SetOperation, sides: list[AnyRows]) -> AnyRows:
    """Return the rows of UNION, INTERSECT or EXCEPT of two sides."""
    names = [*sides[0].columns]
    if len(names) != len(sides[1].columns):
        raise Refused(tree, "both sides of a set operation must have the same number of columns")
    sides[1] = renamed(sides[1], names)
    is_distinct = tree.args.get("distinct")
    if isinstance(tree, exp.Union):
        together = _together(chain, sides)
        return distinct(chain, together) if is_distinct else together
    return _compared(chain, tree, sides, is_distinct=bool(is_distinct))


def _together(chain: Chain, sides: list[AnyRows]) -> AnyRows:
    branches: list[Branch] = []
    for side in sides:
        if isinstance(side.source, Together):
            for source, asked, columns in side.source.branches:
                flat = QueryRows(source, columns, asked)
                conditions = (*asked, *(flat.resolved(w) for w in side.where))
                branches.append(
                    (source, conditions, {n: flat.resolved(t) for n, t in side.columns.items()})
                )
            continue
        stored = chain.stored(side)
        branches.append((stored.source, stored.where, stored.columns))
    return QueryRows(Together(tuple(branches)), {n: exp.column(n) for n in sides[0].columns})


def _compared(
    chain: Chain, tree: exp.SetOperation, sides: list[AnyRows], *, is_distinct: bool
) -> AnyRows:
    """Return the rows of the left side that the right one has, or hasn't.

    Distinct ones are there once, others as often as both have them, or as the left has more.
    """
    both_sides = []
    for which, side in enumerate(sides):
        marks = {
            "in_left": exp.Literal.number(1 - which),
            "in_right": exp.Literal.number(which),
        }
        both_sides.append(QueryRows(side.source, {**side.columns, **marks}, side.where))
    together = chain.stored(_together(chain, both_sides))
    keys = {n: together.columns[n] for n in sides[0].columns}
    counts = {
        n: exp.Anonymous(this="sum", expressions=[together.columns[n]])
        for n in ("in_left", "in_right")
    }
    source = Grouped(
        together.source,
        together.where,
        {f"k{i}": t for i, t in enumerate(keys.values())},
        counts,
    )
    shown = {n: exp.column(f"k{i}") for i, n in enumerate(keys)}
    if not is_distinct:
        return _repeated(chain, QueryRows(source, shown), isinstance(tree, exp.Intersect))
    second = exp.GT if isinstance(tree, exp.Intersect) else exp.EQ
    conditions = [
        compared(this=exp.column(n), expression=exp.Literal.number(0))
        for n, compared in (("in_left", exp.GT), ("in_right", second))
    ]
    return QueryRows(source, shown, tuple(conditions))


def _repeated(chain: Chain, groups: QueryRows[Grouped], is_intersection: bool) -> AnyRows:
    """Return each group as often as both sides have it, or as the left side has more."""
    left, right = (exp.column(n) for n in ("in_left", "in_right"))
    both = exp.Anonymous(this="least", expressions=[left, right])
    times: Tree = both if is_intersection else exp.Sub(this=left, expression=right)
    counted = QueryRows(groups.source, {**groups.columns, "times": times})
    stored = chain.stored(counted)
    one, many = exp.Literal.number(1), stored.columns["times"]
    numbers = exp.Anonymous(this="sequence", expressions=[one, many.copy()])
    number = chain.number()
    where = exp.GT(this=many.copy(), expression=exp.Literal.number(0))
    source = ExplodedRows(
        stored.source,
        (*stored.where, where),
        exp.cast(numbers, "array<bigint>"),
        f"item_{number}",
        f"place_{number}",
    )
    return QueryRows(source, {n: stored.columns[n] for n in groups.columns})


def distinct(chain: Chain, relation: AnyRows) -> AnyRows:
    """Return each row once."""
    stored = chain.stored(relation)
    source = DistinctRows(stored.source, stored.columns, stored.where)
    return QueryRows(source, {name: exp.column(name) for name in stored.columns})
