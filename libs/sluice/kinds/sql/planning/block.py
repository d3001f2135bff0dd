"""One SELECT as a relation: sources and joins, conditions, groups, windows, order.

The query's names are resolved before: every column has its table.
"""

from collections.abc import Iterable

from sqlglot import exp

from sluice.kinds.sql.clauses.grouping import grouped
from sluice.kinds.sql.clauses.sets import distinct, set_of
from sluice.kinds.sql.clauses.windows import as_ranked, windowed, with_windows_inlined
from sluice.kinds.sql.planning import subqueries
from sluice.kinds.sql.planning.joined_sources import JoinedSources
from sluice.kinds.sql.planning.joining import unfiltered
from sluice.kinds.sql.planning.later import deferred, with_later
from sluice.kinds.sql.planning.planner import Planner
from sluice.kinds.sql.reading.aggregates import has_aggregates
from sluice.kinds.sql.reading.query import OF_ROWS
from sluice.kinds.sql.reading.trees import Refused, columns_in, conjuncts, sql
from sluice.kinds.sql.relations.ordered import Ranked
from sluice.kinds.sql.relations.sources import AnyRows, QueryRows
from sluice.language.syntax import Tree

NEVER = {
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "match": "MATCH_RECOGNIZE",
    "connect": "CONNECT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sort": "SORT BY",
    "into": "INTO",
    "locks": "FOR UPDATE",
}


class Queries(Planner):
    """Plans queries into a chain."""

    def value(self, joined: JoinedSources, subquery: exp.Subquery) -> Tree:
        """Join a scalar subquery to rows; return the expression of its value."""
        return subqueries.scalar(joined, subquery, f"S{self.chain.number()}")

    def query(self, tree: Tree) -> AnyRows:
        """Return the relation of a SELECT, a set operation or a list of VALUES."""
        inner = tree.this if isinstance(tree, exp.Subquery) else tree
        try:
            with self.sharing(inner):
                return self._query(inner)
        except ValueError as error:
            return self.chain.refuse(error, inner)

    def _query(self, inner: Tree) -> AnyRows:
        if isinstance(inner, exp.Select):
            return self._ended(self._select(inner), inner)
        if isinstance(inner, exp.SetOperation):
            sides = [self.query(side) for side in (inner.left, inner.right)]
            return self._ended(set_of(self.chain, inner, sides), inner)
        if isinstance(inner, exp.Subquery):
            return self.query(inner)
        if isinstance(inner, exp.Values):
            return self.values(inner)
        raise Refused(
            inner, f"{type(inner).__name__.upper()} can't be maintained incrementally yet"
        )

    def _select(self, select: exp.Select) -> AnyRows:
        for name, what in NEVER.items():
            if select.args.get(name):
                raise Refused(select, f"{what} can't be maintained incrementally")
        with_windows_inlined(select)
        items = {item.alias_or_name: item.unalias() for item in select.expressions}
        if len(items) < len(select.expressions):
            raise Refused(select, "two columns have the same name: rename one of them by AS")
        order = select.args.get("order")
        keys = [key.copy() for key in order.expressions] if order and _is_limited(select) else []
        having = select.args.get("having")
        after = [*items.values(), *keys, *([having.this] if having else [])]
        after += [*(select.args["group"].expressions if select.args.get("group") else ())]
        after += [select.args["qualify"].this] if select.args.get("qualify") else []
        where = select.args.get("where")
        conditions = conjuncts(where.this if where else None)
        joined, queries = unfiltered(self, select, conditions, after)
        for condition in queries:
            subqueries.keep(joined, condition)
        items = _exploded(joined, items, after)
        return self._shown(select, joined, items, keys)

    def _shown(
        self, select: exp.Select, joined: JoinedSources, items: dict[str, Tree], keys: list[Tree]
    ) -> AnyRows:
        having = select.args.get("having")
        items, keys = _by_alias(items, keys)
        trees = {**items, **{f"order {i}": key.this for i, key in enumerate(keys)}}
        asked = {f"having {i}": c for i, c in enumerate(conjuncts(having.this if having else None))}
        qualify = select.args.get("qualify")
        best = {f"best {i}": c for i, c in enumerate(conjuncts(qualify.this if qualify else None))}
        trees = {**trees, **asked, **best}
        if select.args.get("group") or has_aggregates(trees.values()):
            relation = self._grouped(select, joined, trees)
        else:
            trees = subqueries.with_scalars(joined, trees)
            shown = {name: joined.rows.resolved(tree) for name, tree in trees.items()}
            relation = QueryRows(joined.rows.source, shown, joined.rows.where)
        relation = relation.kept(relation.columns[name] for name in asked)
        relation = windowed(self.chain, _without(relation, asked))
        relation = as_ranked(relation.kept(relation.columns[name] for name in best))
        relation = _without(relation, best)
        if select.args.get("distinct"):
            relation = self._distinct(select, relation, keys)
        if _is_limited(select):
            return self._first(select, relation, [*items], keys)
        return relation

    def _grouped(
        self, select: exp.Select, joined: JoinedSources, trees: dict[str, Tree]
    ) -> AnyRows:
        trees, later = deferred(trees)
        trees = subqueries.with_scalars(joined, trees)
        relation = grouped(self.chain, select, joined.rows, trees)
        return with_later(self, relation, later)

    def _distinct(self, select: exp.Select, relation: AnyRows, keys: list[Tree]) -> AnyRows:
        if select.args["distinct"].args.get("on"):
            raise Refused(select, "DISTINCT ON is not Spark SQL")
        if keys:
            shown = {sql(t): n for n, t in relation.columns.items() if not n.startswith("order ")}
            order = {n: t for n, t in relation.columns.items() if n.startswith("order ")}
            if any(sql(tree) not in shown for tree in order.values()):
                raise Refused(
                    select, "ORDER BY of a SELECT DISTINCT sorts by columns that it shows"
                )
            only = QueryRows(
                relation.source,
                {n: t for n, t in relation.columns.items() if n not in order},
                relation.where,
            )
            once = distinct(self.chain, only)
            return QueryRows(
                once.source,
                {**once.columns, **{n: exp.column(shown[sql(t)]) for n, t in order.items()}},
            )
        return distinct(self.chain, relation)

    def _first(
        self, select: Tree, relation: AnyRows, shown: list[str], keys: list[Tree]
    ) -> AnyRows:
        """Return the rows that ORDER BY and LIMIT leave."""
        if not keys:
            raise Refused(select, "LIMIT without ORDER BY takes arbitrary rows: add an ORDER BY")
        stored = self.chain.stored(relation)
        order = []
        for i, key in enumerate(keys):
            ordered = key.copy()
            ordered.set("this", stored.columns[f"order {i}"].copy())
            order.append(ordered)
        limit, offset = (_number(select, which) for which in ("limit", "offset"))
        if limit is None:
            raise Refused(select, "OFFSET without LIMIT changes with every row; add a LIMIT")
        source = Ranked(stored.source, stored.where, (), tuple(order), limit, offset or 0)
        return QueryRows(source, {name: stored.columns[name] for name in shown})

    def _ended(self, relation: AnyRows, tree: Tree) -> AnyRows:
        """Return a set operation after its ORDER BY and LIMIT; a SELECT has done that itself."""
        if isinstance(tree, exp.Select) or not _is_limited(tree):
            return relation
        order = tree.args.get("order")
        keys = [key.copy() for key in order.expressions] if order else []
        sorted_by = {f"order {i}": relation.resolved(key.this) for i, key in enumerate(keys)}
        more = QueryRows(relation.source, {**relation.columns, **sorted_by}, relation.where)
        return self._first(tree, more, [*relation.columns], keys)


def _exploded(joined: JoinedSources, items: dict[str, Tree], after: list[Tree]) -> dict[str, Tree]:
    """Return selected expressions with a column instead of an exploded array."""
    calls = {n: t for n, t in items.items() if t.find(exp.Anonymous) and _is_generator(t)}
    if not calls:
        return items
    if len(calls) > 1:
        raise Refused([*calls.values()][1], "two arrays are exploded: write LATERAL VIEW for each")
    ((name, call),) = calls.items()
    alias = f"E{joined.planner.chain.number()}"
    joined.explode(call, alias, [name], after, outer=False)
    return {**items, name: exp.column(name, alias)}


def _is_generator(tree: Tree) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.lower() in OF_ROWS


def _by_alias(items: dict[str, Tree], keys: list[Tree]) -> tuple[dict[str, Tree], list[Tree]]:
    """Return ORDER BY with the names of selected columns replaced by their expressions."""
    for key in keys:
        for column in [c for c in columns_in(key) if not c.table]:
            if column.name in items:
                column.replace(items[column.name].copy())
    return items, keys


def _without(relation: AnyRows, names: Iterable[str]) -> AnyRows:
    columns = {n: t for n, t in relation.columns.items() if n not in names}
    return QueryRows(relation.source, columns, relation.where)


def _is_limited(tree: Tree) -> bool:
    return bool(tree.args.get("limit") or tree.args.get("offset"))


def _number(tree: Tree, which: str) -> int | None:
    found = tree.args.get(which)
    if found is None:
        return None
    value = found.expression
    if not isinstance(value, exp.Literal) or not value.name.isdigit():
        raise Refused(found, f"{which.upper()} wants a number")
    return int(value.name)
