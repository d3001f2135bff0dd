"""Subqueries tied to the outer query by more than equalities: `o.k = p.k AND p.v < o.v`.

Their rows are joined to the distinct values that the outer rows have in these conditions. An outer
row with a null among them matches none, which needs conditions that are never true of a null.
"""

from collections.abc import Iterable

from sqlglot import exp

from sluice.kinds.sql.planning.joined_sources import JoinedSources, equalities
from sluice.kinds.sql.reading.trees import Refused, columns_in, key_of
from sluice.kinds.sql.relations.sources import AnyRows, DistinctRows, QueryRows
from sluice.language.syntax import Tree

STRICT = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Like),
    *(exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg),
    *(exp.Interval, exp.Var),
)


def matched(
    joined: JoinedSources, item: Tree, inner: AnyRows, own: set[str], conditions: list[Tree]
) -> tuple[AnyRows, list[tuple[Tree, Tree]]]:
    """Return the subquery's rows with the outer values that they match, and pairs of these."""
    _check(joined, own, conditions)
    outer = [*{key_of(c): c for c in _columns(conditions) if c.table in joined.aliases}.values()]
    joined.after += [column.copy() for column in outer]
    joined.rows = rows = joined.side()
    values = {f"d{i}": rows.columns[key_of(column)] for i, column in enumerate(outer)}
    seen = DistinctRows(rows.source, values, rows.where)
    names = {key_of(column): exp.column(f"d{i}") for i, column in enumerate(outer)}
    after: list[Tree] = [item, *outer]
    inside = JoinedSources(joined.planner, QueryRows(seen, names), joined.aliases, [], after)
    inside.join(inner, own, "inner", [c.copy() for c in conditions], [])
    return inside.rows, [(column.copy(), column.copy()) for column in outer]


def _check(joined: JoinedSources, own: set[str], conditions: list[Tree]) -> None:
    pairs, others = equalities(conditions, joined.aliases, own)
    if not pairs:
        raise Refused(others[0], "a scalar subquery needs an equality to the outer query")
    for condition in conditions:
        for node in condition.walk():
            if not isinstance(node, STRICT):
                what = "this condition on the outer query is not supported; compare plain values"
                raise Refused(condition, what)
        if not {c.table for c in _columns([condition])} <= joined.aliases | own:
            what = "a subquery's condition names a table that is neither its own nor just outside"
            raise Refused(condition, what)


def _columns(trees: Iterable[Tree]) -> list[exp.Column]:
    return [column for tree in trees for column in columns_in(tree)]
