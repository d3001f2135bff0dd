"""Uncorrelated scalar subqueries: their values are joined to groups once these are formed."""

from sqlglot import exp

from sluice.kinds.sql.clauses.grouping import LATER
from sluice.kinds.sql.planning.joined_sources import JoinedSources
from sluice.kinds.sql.planning.planner import Planner
from sluice.kinds.sql.planning.subqueries import scalar
from sluice.kinds.sql.reading.aggregates import is_aggregate
from sluice.kinds.sql.reading.trees import columns_in, substituted
from sluice.kinds.sql.relations.sources import AnyRows, QueryRows
from sluice.kinds.sql.rewriting.correlated import is_alone
from sluice.language.syntax import Tree


def deferred(trees: dict[str, Tree]) -> tuple[dict[str, Tree], dict[str, exp.Subquery]]:
    """Return expressions with columns instead of uncorrelated scalar subqueries.

    Those in an aggregate are needed before, for each row.
    """
    found: dict[str, exp.Subquery] = {}

    def outside(tree: Tree) -> Tree:
        if isinstance(tree, exp.Subquery) and tree.arg_key != "query" and is_alone(tree.this):
            name = f"q{len(found)}"
            found[name] = tree.copy()
            return exp.column(name, LATER)
        for child in [] if is_aggregate(tree) else [*tree.iter_expressions()]:
            if (other := outside(child)) is not child:
                child.replace(other)
        return tree

    return {name: outside(tree.copy()) for name, tree in trees.items()}, found


def with_later(planner: Planner, rows: AnyRows, subqueries: dict[str, exp.Subquery]) -> AnyRows:
    """Join the values of deferred subqueries to rows."""
    if not subqueries:
        return rows
    places = {c.name: c for t in rows.columns.values() for c in columns_in(t) if not c.table}
    columns: dict[str, Tree] = {f"_.{name}": exp.column(name) for name in places}
    after: list[Tree] = [exp.column(name, "_") for name in places]
    joined = JoinedSources(planner, QueryRows(rows.source, columns, rows.where), {"_"}, [], after)
    values = {
        f"{LATER}.{name}": scalar(joined, subquery, f"S{planner.chain.number()}")
        for name, subquery in subqueries.items()
    }
    seen = {name: joined.rows.resolved(value) for name, value in values.items()}
    seen |= {name: joined.rows.columns[f"_.{name}"] for name in places}
    shown = {name: substituted(tree, seen) for name, tree in rows.columns.items()}
    return QueryRows(joined.rows.source, shown, joined.rows.where)
