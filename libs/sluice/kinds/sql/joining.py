"""FROM, JOIN and WHERE: the sources of a SELECT joined one after the other.

An equality between two tables joins them, wherever it is written.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from sluice.kinds.sql import subqueries
from sluice.kinds.sql.query import Refused
from sluice.kinds.sql.scope import NO_EQUALITY, Scope, equalities, prefixed
from sluice.kinds.sql.sources import AnyRows
from sluice.kinds.sql.trees import conjuncts
from sluice.language.syntax import Tree

if TYPE_CHECKING:
    from sluice.kinds.sql.block import Planner

TYPES = {
    "": "inner",
    "INNER": "inner",
    "CROSS": "inner",
    "LEFT": "left",
    "RIGHT": "right",
    "FULL": "full",
    "SEMI": "semi",
    "ANTI": "anti",
}


def joined(planner: "Planner", select: exp.Select, after: list[Tree]) -> Scope:
    """Return the rows of FROM and JOIN that meet WHERE; columns by `alias.column`."""
    where = select.args.get("where")
    scope, rest = unfiltered(planner, select, conjuncts(where.this if where else None), after)
    for condition in rest:
        subqueries.keep(scope, condition)
    return scope


def unfiltered(
    planner: "Planner", select: exp.Select, conditions: list[Tree], after: list[Tree]
) -> tuple[Scope, list[Tree]]:
    """Return the joined sources, and the conditions that were not applied: those with queries."""
    first, rows = planner.source(select.args["from_"].this)
    waiting = [_Join.of(planner, join) for join in select.args.get("joins") or ()]
    _check_commas(waiting)
    scope = Scope(planner, prefixed(rows, first), {first}, list(conditions), after)
    while waiting:
        scope.nulls_follow = any(join.type in ("right", "full") for join in waiting)
        join = _next(scope, waiting)
        waiting.remove(join)
        scope.apply()
        rest = [c for other in waiting for c in other.on]
        if join.type == "inner":
            on = scope.taken_by(join.alias, join.on)
            scope.join(join.rows, join.alias, "inner", on, rest)
        else:
            scope.join(join.rows, join.alias, join.type, join.on, rest)
    scope.nulls_follow = False
    scope.apply()
    queries = scope.left_over()
    scope.after = [*scope.after, *queries]
    return scope, queries


def _check_commas(joins: "list[_Join]") -> None:
    """Refuse a comma before a RIGHT or FULL JOIN, which binds more tightly."""
    has_comma = False
    for join in joins:
        has_comma = has_comma or join.is_comma
        if has_comma and join.type in ("right", "full"):
            raise Refused(
                join.tree,
                "write JOIN in place of the comma or CROSS JOIN before a RIGHT or FULL JOIN",
            )


@dataclass(eq=False)
class _Join:
    """A source with the way in which it is joined."""

    alias: str
    rows: AnyRows
    type: str
    on: list[Tree]
    tree: exp.Join

    @property
    def is_comma(self) -> bool:
        """True for `FROM a, b`, which reads like a CROSS JOIN."""
        return self.tree.kind.upper() == "CROSS"

    @classmethod
    def of(cls, planner: "Planner", join: exp.Join) -> "_Join":
        if join.args.get("match_condition") or join.args.get("using"):
            raise Refused(join, "such a join can't be kept incrementally")
        kind, side = join.kind.upper(), join.side.upper()
        name = kind if kind in ("SEMI", "ANTI", "CROSS") else side or kind
        if name not in TYPES or (join.method and join.method.upper() != "NATURAL"):
            raise Refused(join, f"{name or join.method} JOIN can't be kept incrementally")
        alias, rows = planner.source(join.this)
        return cls(alias, rows, TYPES[name], conjuncts(join.args.get("on")), join)


def _next(scope: Scope, waiting: list[_Join]) -> _Join:
    """Return the join to do next: the first, or an inner one that an equality links by now."""
    for join in waiting:
        if join.type != "inner":
            if join is waiting[0]:
                return join
            break
        if equalities(scope.usable(join.on), scope.aliases, {join.alias})[0]:
            return join
    raise Refused(waiting[0].tree, NO_EQUALITY)
