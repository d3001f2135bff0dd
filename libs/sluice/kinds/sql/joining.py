"""FROM and JOIN: the sources of a SELECT joined one after the other.

An equality between two tables joins them, in ON or in WHERE.
"""

from dataclasses import dataclass

from sqlglot import exp

from sluice.kinds.sql import correlated
from sluice.kinds.sql.joins import JoinedSources, Planner, equalities, no_equality, prefix_columns
from sluice.kinds.sql.relations import AnyRows, QueryRows, TableRows
from sluice.kinds.sql.trees import Refused, columns_in, conjuncts, is_true, line_of
from sluice.language.syntax import Tree

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


def join_sources(
    planner: Planner, select: exp.Select, conditions: list[Tree], after: list[Tree]
) -> tuple[JoinedSources, list[Tree]]:
    """Return the joined sources, and the conditions that were not applied: those with queries."""
    from_ = select.args.get("from_")  # without FROM, one row
    rows, aliases = _source(planner, from_.this) if from_ else (planner.one_row(), set())
    joined = JoinedSources(planner, rows, aliases, list(conditions), after)
    waiting = [_Join.of(planner, join) for join in select.args.get("joins") or ()]
    _check_commas(waiting)
    views = [
        _Join.of_array(view, view.args.get("outer")) for view in select.args.get("laterals", ())
    ]
    _join_all(joined, waiting, views)
    for view in views:
        view.explode(joined, [])
        joined.apply()
    queries = joined.left_over()
    joined.after = [*joined.after, *queries]
    return joined, queries


def _source(planner: Planner, tree: Tree) -> tuple[AnyRows, set[str]]:
    """Return the rows of a source or of joins in parentheses, by `alias.column`; its aliases."""
    inner = tree.this if isinstance(tree, exp.Subquery) and not tree.alias else tree
    if isinstance(inner, exp.Table) and inner.args.get("joins"):
        alone = inner.copy()
        alone.set("joins", None)
        joins = inner.args["joins"]
        select = exp.Select(from_=exp.From(this=alone), joins=[j.copy() for j in joins])
        after: list[Tree] = [c.copy() for c in columns_in(tree.root())]
        joined, rest = join_sources(planner, select, [], after)
        if rest:
            raise Refused(rest[0], "a subquery in ON is not supported; write it in WHERE")
        return joined.rows, joined.aliases
    alias, rows = planner.source(tree)
    return prefix_columns(rows, alias), {alias}


def _join_all(joined: JoinedSources, waiting: "list[_Join]", later: "list[_Join]") -> None:
    """Join the sources, each as soon as it can be."""
    while waiting:
        joined.nulls_follow = any(join.type in ("right", "full") for join in waiting)
        join = _next(joined, waiting)
        waiting.remove(join)
        joined.apply()
        rest = [c for other in (*waiting, *later) for c in (*other.on, *other.arrays)]
        if join.arrays:
            join.explode(joined, rest)
        elif join.type == "inner":
            on = joined.taken_by(join.aliases, join.on)
            joined.join(join.rows, join.aliases, "inner", on, rest)
        else:
            joined.join(join.rows, join.aliases, join.type, join.on, rest)
    joined.nulls_follow = False
    joined.apply()


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
    """A source with the way in which it is joined; or an array to explode, of `arrays`."""

    aliases: set[str]
    rows: AnyRows
    type: str
    on: list[Tree]
    tree: Tree
    arrays: tuple[Tree, ...] = ()

    @property
    def is_comma(self) -> bool:
        """True for `FROM a, b`, which reads like a CROSS JOIN."""
        return isinstance(self.tree, exp.Join) and self.tree.kind.upper() == "CROSS"

    @classmethod
    def of(cls, planner: Planner, join: exp.Join) -> "_Join":
        if join.args.get("match_condition") or join.args.get("using"):
            raise Refused(join, "this join can't be maintained incrementally")
        kind, side = join.kind.upper(), join.side.upper()
        name = kind if kind in ("SEMI", "ANTI", "CROSS") else side or kind
        if name not in TYPES or (join.method and join.method.upper() != "NATURAL"):
            words = " ".join(word for word in (join.method.upper(), name, "JOIN") if word)
            raise Refused(join, f"{words} can't be maintained incrementally")
        on = conjuncts(join.args.get("on"))
        for column in (c for condition in on for c in columns_in(condition) if not line_of(c)):
            column.meta["line"] = line_of(join)  # USING, whose columns have no place of their own
        if isinstance(join.this, exp.Lateral):
            on = [condition for condition in on if not is_true(condition)]
            if on or name not in ("", "INNER", "CROSS", "LEFT"):
                raise Refused(join, "join a LATERAL array by CROSS JOIN, or LEFT JOIN … ON true")
            if isinstance(join.this.this, exp.Subquery):
                return cls.of_query(planner, join.this, name == "LEFT")
            return cls.of_array(join.this, name == "LEFT")
        rows, aliases = _source(planner, join.this)
        return cls(aliases, rows, TYPES[name], on, join)

    @classmethod
    def of_array(cls, view: exp.Lateral, outer: bool) -> "_Join":
        """Return the step that explodes the array of a LATERAL VIEW."""
        call = view.this
        if not isinstance(call, exp.Anonymous):
            raise Refused(view, "write this LATERAL query after a comma or JOIN")
        kind = "left" if outer else "inner"
        return cls({view.alias}, QueryRows(TableRows(""), {}), kind, [], view, (call,))

    @classmethod
    def of_query(cls, planner: Planner, view: exp.Lateral, outer: bool) -> "_Join":
        """Return the step that joins the rows that a LATERAL query has for each row."""
        select, kind = view.this.this, "left" if outer else "inner"
        if not isinstance(select, exp.Select):
            raise Refused(view, "a LATERAL query must be one SELECT")
        if select.args.get("from_") is None or correlated.is_total(select):
            return cls({view.alias}, QueryRows(TableRows(""), {}), kind, [], view, (view.this,))
        found = correlated.untie_query(select)
        rows = planner.query(found.select)
        return cls(
            {view.alias}, prefix_columns(rows, view.alias), kind, found.tie(view.alias), view
        )

    def explode(self, joined: JoinedSources, rest: list[Tree]) -> None:
        """Replace each row joined so far by a row for each element, or add columns."""
        if isinstance(self.arrays[0], exp.Subquery):
            _add_values(joined, self.arrays[0], *self.aliases)
            return
        names = [name.name for name in self.tree.args["alias"].args.get("columns") or ()]
        (alias,) = self.aliases
        joined.explode(self.arrays[0], alias, names, rest, outer=self.type == "left")


def _add_values(joined: JoinedSources, subquery: exp.Subquery, alias: str) -> None:
    """Add the columns of a query that has one row for each row."""
    if subquery.this.args.get("having"):
        raise Refused(
            subquery, "a LATERAL aggregate with HAVING is not supported: write WHERE outside"
        )
    found = {}
    joined.after += [item.copy() for item in subquery.this.expressions]
    for item in subquery.this.expressions:
        single = subquery.copy()
        single.this.set("expressions", [item.copy()])
        value = joined.planner.value(joined, single)
        found[f"{alias}.{item.alias_or_name}"] = value
    columns = {name: joined.rows.resolve(value) for name, value in found.items()}
    joined.rows = QueryRows(
        joined.rows.source, {**joined.rows.columns, **columns}, joined.rows.where
    )
    joined.aliases = joined.aliases | {alias}


def _next(joined: JoinedSources, waiting: list[_Join]) -> _Join:
    """Return the join to do next: the first, or an inner one that an equality links by now."""
    for join in waiting:
        if join.arrays or join.type != "inner":
            if join is waiting[0]:
                return join
            break
        if equalities(joined.usable(join.on), joined.aliases, join.aliases)[0]:
            return join
        if joined.is_free(join.rows):
            return join
    raise Refused(waiting[0].tree, no_equality(waiting[0].on))
