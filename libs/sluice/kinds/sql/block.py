"""One SELECT as a relation: sources and joins, conditions, groups, windows, order.

The query's names are resolved before: every column has its table.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sluice.kinds.sql import constants, joining, subqueries
from sluice.kinds.sql.chain import Chain
from sluice.kinds.sql.grouping import grouped, has_aggregates
from sluice.kinds.sql.query import OF_ROWS, Refused
from sluice.kinds.sql.scope import Scope
from sluice.kinds.sql.sources import (
    AnyRows,
    Branch,
    Distinct,
    Exploded,
    Grouped,
    Ranked,
    Relation,
    Stored,
    Together,
)
from sluice.kinds.sql.trees import columns_in, conjuncts, sql
from sluice.kinds.sql.windows import as_ranked, windowed, with_windows_inlined
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


@dataclass
class Planner:
    """Plans queries into a chain. `shared`: relations of common table expressions, by name."""

    chain: Chain
    tables: Mapping[str, AnyRows]
    shared: dict[str, AnyRows] = field(default_factory=dict)

    def query(self, tree: Tree) -> AnyRows:
        """Return the relation of a SELECT, a set operation or a list of VALUES."""
        inner = tree.this if isinstance(tree, exp.Subquery) else tree
        self._share(inner)
        if isinstance(inner, exp.Select):
            return self._ended(self._select(inner), inner)
        if isinstance(inner, exp.SetOperation):
            return self._ended(self._set(inner), inner)
        if isinstance(inner, exp.Subquery):
            return self.query(inner)
        if isinstance(inner, exp.Values):
            return self._values(inner)
        raise Refused(inner, f"{type(inner).__name__.upper()} can't be kept incrementally yet")

    def unfiltered(
        self, select: exp.Select, conditions: list[Tree], after: list[Tree]
    ) -> tuple[Scope, list[Tree]]:
        """Return the joined sources of a SELECT, and the conditions that have queries in them."""
        return joining.unfiltered(self, select, conditions, after)

    def one_row(self) -> AnyRows:
        """Return one row without columns."""
        return constants.one_row(self._any_table())

    def _any_table(self) -> Stored:
        return next(t.source for t in self.tables.values() if isinstance(t.source, Stored))

    def _values(self, tree: exp.Values) -> AnyRows:
        alias = tree.args.get("alias") or exp.TableAlias()
        names = [c.name for c in alias.args.get("columns") or ()]
        return constants.values(self.chain, self._any_table(), tree, names)

    def _share(self, tree: Tree) -> None:
        with_ = tree.args.get("with_")
        if with_ is None:
            return
        if with_.args.get("recursive"):
            raise Refused(with_, "WITH RECURSIVE can't be kept incrementally")
        for cte in with_.expressions:
            relation = self.query(cte.this)
            names = [c.name for c in cte.args["alias"].args.get("columns") or ()]
            uses = [t for t in tree.find_all(exp.Table) if not t.db and t.name == cte.alias]
            stored = self.chain.stored(relation) if len(uses) > 1 else relation
            self.shared[cte.alias] = _renamed(stored, names)

    def source(self, tree: Tree) -> tuple[str, AnyRows]:
        """Return the alias of a table or subquery in FROM, and its rows."""
        if tree.args.get("pivots") or tree.args.get("sample"):
            raise Refused(tree, "PIVOT and TABLESAMPLE can't be kept incrementally")
        if isinstance(tree, exp.Table) and not tree.db and tree.name not in self.shared:
            raise Refused(tree, f"{tree.name!r} of WITH is not known here; give it another name")
        if isinstance(tree, exp.Table) and not tree.db:
            return tree.alias_or_name, self.shared[tree.name]
        if isinstance(tree, exp.Table):
            return tree.alias_or_name, self.tables[f"{tree.db}.{tree.name}"]
        if isinstance(tree, exp.Values):
            return tree.alias, self._values(tree)
        if isinstance(tree, exp.Subquery):
            names = [
                c.name
                for c in (tree.args.get("alias") or exp.TableAlias()).args.get("columns") or ()
            ]
            return tree.alias, _renamed(self.query(tree), names)
        raise Refused(
            tree, f"{type(tree).__name__.upper()} in FROM can't be kept incrementally yet"
        )

    def _select(self, select: exp.Select) -> AnyRows:
        for name, what in NEVER.items():
            if select.args.get(name):
                raise Refused(select, f"{what} can't be kept incrementally")
        with_windows_inlined(select)
        items = {item.alias_or_name: item.unalias() for item in select.expressions}
        if len(items) < len(select.expressions):
            raise Refused(select, "two columns have one name: give one of them another by AS")
        order = select.args.get("order")
        keys = [key.copy() for key in order.expressions] if order and _is_limited(select) else []
        having = select.args.get("having")
        after = [*items.values(), *keys, *([having.this] if having else [])]
        after += [*(select.args["group"].expressions if select.args.get("group") else ())]
        after += [select.args["qualify"].this] if select.args.get("qualify") else []
        scope = joining.joined(self, select, after)
        items = _exploded(scope, items, after)
        return self._shown(select, scope, items, keys)

    def _shown(
        self, select: exp.Select, scope: Scope, items: dict[str, Tree], keys: list[Tree]
    ) -> AnyRows:
        having = select.args.get("having")
        items, keys = _by_alias(items, keys)
        trees = {**items, **{f"order {i}": key.this for i, key in enumerate(keys)}}
        asked = {f"having {i}": c for i, c in enumerate(conjuncts(having.this if having else None))}
        qualify = select.args.get("qualify")
        best = {f"best {i}": c for i, c in enumerate(conjuncts(qualify.this if qualify else None))}
        trees = {**trees, **asked, **best}
        if select.args.get("group") or has_aggregates(trees.values()):
            relation = self._grouped(select, scope, trees)
        else:
            trees = subqueries.with_scalars(scope, trees)
            shown = {name: scope.rows.resolved(tree) for name, tree in trees.items()}
            relation = Relation(scope.rows.source, shown, scope.rows.where)
        relation = relation.kept(relation.columns[name] for name in asked)
        relation = windowed(self.chain, _without(relation, asked))
        relation = as_ranked(relation.kept(relation.columns[name] for name in best))
        relation = _without(relation, best)
        if select.args.get("distinct"):
            relation = self._distinct(select, relation, keys)
        if _is_limited(select):
            return self._first(select, relation, [*items], keys)
        return relation

    def _grouped(self, select: exp.Select, scope: Scope, trees: dict[str, Tree]) -> AnyRows:
        trees, later = subqueries.deferred(trees)
        trees = subqueries.with_scalars(scope, trees)
        relation = grouped(self.chain, select, scope.rows, trees)
        return subqueries.with_later(self, relation, later)

    def _distinct(self, select: exp.Select, relation: AnyRows, keys: list[Tree]) -> AnyRows:
        if select.args["distinct"].args.get("on"):
            raise Refused(select, "DISTINCT ON is no Spark SQL")
        if keys:
            shown = {sql(t): n for n, t in relation.columns.items() if not n.startswith("order ")}
            order = {n: t for n, t in relation.columns.items() if n.startswith("order ")}
            if any(sql(tree) not in shown for tree in order.values()):
                raise Refused(
                    select, "ORDER BY of a SELECT DISTINCT sorts by columns that it shows"
                )
            only = Relation(
                relation.source,
                {n: t for n, t in relation.columns.items() if n not in order},
                relation.where,
            )
            distinct = self._distinct_of(only)
            return Relation(
                distinct.source,
                {**distinct.columns, **{n: exp.column(shown[sql(t)]) for n, t in order.items()}},
            )
        return self._distinct_of(relation)

    def _distinct_of(self, relation: AnyRows) -> AnyRows:
        stored = self.chain.stored(relation)
        source = Distinct(stored.source, stored.columns, stored.where)
        return Relation(source, {name: exp.column(name) for name in stored.columns})

    def _first(
        self, select: Tree, relation: AnyRows, shown: list[str], keys: list[Tree]
    ) -> AnyRows:
        """Return the rows that ORDER BY and LIMIT leave."""
        if not keys:
            raise Refused(select, "LIMIT without ORDER BY takes any rows: say which by ORDER BY")
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
        return Relation(source, {name: stored.columns[name] for name in shown})

    def _set(self, tree: exp.SetOperation) -> AnyRows:
        sides = [self.query(side) for side in (tree.left, tree.right)]
        names = [*sides[0].columns]
        if len(names) != len(sides[1].columns):
            raise Refused(tree, "both sides of a set operation have the same number of columns")
        sides[1] = _renamed(sides[1], names)
        is_distinct = tree.args.get("distinct")
        if isinstance(tree, exp.Union):
            together = self._together(sides)
            return self._distinct_of(together) if is_distinct else together
        return self._compared(tree, sides, is_distinct=bool(is_distinct))

    def _together(self, sides: list[AnyRows]) -> AnyRows:
        branches: list[Branch] = []
        for side in sides:
            if isinstance(side.source, Together):
                for source, asked, columns in side.source.branches:
                    flat = Relation(source, columns, asked)
                    conditions = (*asked, *(flat.resolved(w) for w in side.where))
                    branches.append(
                        (source, conditions, {n: flat.resolved(t) for n, t in side.columns.items()})
                    )
                continue
            stored = self.chain.stored(side)
            branches.append((stored.source, stored.where, stored.columns))
        return Relation(Together(tuple(branches)), {n: exp.column(n) for n in sides[0].columns})

    def _compared(
        self, tree: exp.SetOperation, sides: list[AnyRows], *, is_distinct: bool
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
            both_sides.append(Relation(side.source, {**side.columns, **marks}, side.where))
        together = self.chain.stored(self._together(both_sides))
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
            return self._repeated(Relation(source, shown), isinstance(tree, exp.Intersect))
        second = exp.GT if isinstance(tree, exp.Intersect) else exp.EQ
        conditions = [
            compared(this=exp.column(n), expression=exp.Literal.number(0))
            for n, compared in (("in_left", exp.GT), ("in_right", second))
        ]
        return Relation(source, shown, tuple(conditions))

    def _repeated(self, groups: Relation[Grouped], is_intersection: bool) -> AnyRows:
        """Return each group as often as both sides have it, or as the left side has more."""
        left, right = (exp.column(n) for n in ("in_left", "in_right"))
        both = exp.Anonymous(this="least", expressions=[left, right])
        times: Tree = both if is_intersection else exp.Sub(this=left, expression=right)
        counted = Relation(groups.source, {**groups.columns, "times": times})
        stored = self.chain.stored(counted)
        one, many = exp.Literal.number(1), stored.columns["times"]
        numbers = exp.Anonymous(this="sequence", expressions=[one, many.copy()])
        number = self.chain.number()
        where = exp.GT(this=many.copy(), expression=exp.Literal.number(0))
        source = Exploded(
            stored.source,
            (*stored.where, where),
            exp.cast(numbers, "array<bigint>"),
            f"item_{number}",
            f"place_{number}",
        )
        return Relation(source, {n: stored.columns[n] for n in groups.columns})

    def _ended(self, relation: AnyRows, tree: Tree) -> AnyRows:
        """Return a set operation after its ORDER BY and LIMIT; a SELECT has done that itself."""
        if isinstance(tree, exp.Select) or not _is_limited(tree):
            return relation
        order = tree.args.get("order")
        keys = [key.copy() for key in order.expressions] if order else []
        sorted_by = {f"order {i}": relation.resolved(key.this) for i, key in enumerate(keys)}
        more = Relation(relation.source, {**relation.columns, **sorted_by}, relation.where)
        return self._first(tree, more, [*relation.columns], keys)


def _exploded(scope: Scope, items: dict[str, Tree], after: list[Tree]) -> dict[str, Tree]:
    """Return selected expressions with a column in place of an array that one explodes."""
    calls = {n: t for n, t in items.items() if t.find(exp.Anonymous) and _is_generator(t)}
    if not calls:
        return items
    if len(calls) > 1:
        raise Refused([*calls.values()][1], "two arrays are exploded: write LATERAL VIEW for each")
    ((name, call),) = calls.items()
    alias = f"E{scope.planner.chain.number()}"
    scope.explode(call, alias, [name], after, outer=False)
    return {**items, name: exp.column(name, alias)}


def _is_generator(tree: Tree) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.lower() in OF_ROWS


def filtered(relation: AnyRows, conditions: Iterable[Tree]) -> AnyRows:
    """Return the rows that meet conditions over the relation's columns."""
    return as_ranked(relation.kept(relation.resolved(c) for c in conditions))


def _by_alias(items: dict[str, Tree], keys: list[Tree]) -> tuple[dict[str, Tree], list[Tree]]:
    """Return ORDER BY with the names of selected columns replaced by their expressions."""
    for key in keys:
        for column in [c for c in columns_in(key) if not c.table]:
            if column.name in items:
                column.replace(items[column.name].copy())
    return items, keys


def _renamed(relation: AnyRows, names: list[str]) -> AnyRows:
    if not names:
        return relation
    return Relation(
        relation.source, dict(zip(names, relation.columns.values(), strict=True)), relation.where
    )


def _without(relation: AnyRows, names: Iterable[str]) -> AnyRows:
    columns = {n: t for n, t in relation.columns.items() if n not in names}
    return Relation(relation.source, columns, relation.where)


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
