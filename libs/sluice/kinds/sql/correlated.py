"""Correlated queries, EXISTS and IN, rewritten as equivalent queries.

If groups, ranks or limits apply to each row of the outer query, equalities to outer values become
columns `K0`, `K1` and so on. The query is also grouped or partitioned by these. The remaining
correlation is an equality with these.

EXISTS and IN as values, such as within OR, are counts of the subquery's rows, compared with 0. Both
are true or false, as in Spark. `NOT IN` follows SQL's rule for nulls: it is false if x or one of
the values is null and there are values. `(a, b) NOT IN S` is true if each row of S differs from it
in a column that both have. So no row of S may be equal in some columns if all other columns are
null in either row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from sqlglot import exp

from sluice.kinds.sql.trees import (
    Refused,
    both,
    call_of,
    columns_in,
    conjuncts,
    has_aggregates,
    has_query,
    is_null,
    own_tables,
    tables_of,
)
from sluice.language import syntax
from sluice.language.syntax import Tree

TIE = "a subquery with groups or LIMIT may be correlated with the outer query by equalities only"
ROWS, PLACE = "R", "PLACE"
ZERO, ONE = exp.Literal.number(0), exp.Literal.number(1)
COUNTED_ROWS = "rows_of"  # alias of an unchanged subquery
GROUPS = "groups_of"  # alias of one with groups that are correlated to the outer query
NAMES = ("a", "b", "c", "d")  # of the subquery's columns


def is_closed(select: exp.Select) -> bool:
    """True if the query's rows are not just rows of its FROM and WHERE."""
    asked = ("group", "having", "distinct", "limit", "offset")
    return (
        any(select.args.get(a) for a in asked)
        or has_aggregates(select.expressions)
        or bool(select.find(exp.Window))
    )


def is_total(select: Tree) -> bool:
    """True for an aggregate without GROUP BY, which has one row, or none because of HAVING."""
    return (
        isinstance(select, exp.Select)
        and not select.args.get("group")
        and (bool(select.args.get("having")) or has_aggregates(select.expressions))
    )


def is_limited_to_one(select: exp.Select) -> bool:
    """True for LIMIT 1."""
    limit = select.args.get("limit")
    number = limit.expression if limit else None
    return isinstance(number, exp.Literal) and number.name == "1"


def outer_conditions(select: exp.Select) -> tuple[list[Tree], list[Tree]]:
    """Return the conditions of WHERE that are the query's own, and those that name outer tables."""
    own, where = own_tables(select), select.args.get("where")
    conditions = conjuncts(where.this if where else None)
    outer = [c for c in conditions if not has_query(c) and not tables_of(c) <= own]
    return [c for c in conditions if c not in outer], outer


@dataclass(frozen=True)
class Untied:
    """A query without its tie, and the outer values that its columns `K0`, `K1`, ... equal."""

    select: exp.Select
    values: Sequence[Tree]

    def tie(self, alias: str) -> list[Tree]:
        """Return the conditions that tie the rows, under an alias, to the outer query."""
        return [
            exp.EQ(this=value.copy(), expression=exp.column(f"K{i}", alias))
            for i, value in enumerate(self.values)
        ]


def untie_query(select: exp.Select) -> Untied:
    """Return a query that groups and ranks for all outer values at once."""
    inner, outer = outer_conditions(select)
    pairs = [_pair(condition, own_tables(select)) for condition in outer]
    keys = [exp.alias_(own.copy(), f"K{i}") for i, (own, _) in enumerate(pairs)]
    found = select.copy()
    found.set("where", exp.Where(this=both(inner)) if inner else None)
    found.set("expressions", [*(item.copy() for item in select.expressions), *keys])
    group = found.args.get("group")
    if group and not group.args.get("all"):
        group.set("expressions", [*group.expressions, *(key.this.copy() for key in keys)])
    if select.args.get("limit") or select.args.get("offset"):
        found = _first_of_each(found, keys)
    return Untied(found, [value for _, value in pairs])


def _pair(condition: Tree, own: set[str]) -> tuple[Tree, Tree]:
    """Return the own and the outer side of an equality."""
    if isinstance(condition, exp.EQ):
        one, other = condition.this, condition.expression
        for mine, value in ((one, other), (other, one)):
            if tables_of(mine) and tables_of(mine) <= own and not tables_of(value) & own:
                return mine, value
    raise Refused(condition, f"{syntax.render(condition)!r}: {TIE}")


def _first_of_each(select: exp.Select, keys: list[Tree]) -> exp.Select:
    """Return the rows that ORDER BY and LIMIT leave of each value of the keys."""
    order, limit = select.args.get("order"), select.args.get("limit")
    if order is None or limit is None or select.args.get("distinct"):
        raise Refused(select, "LIMIT in a correlated subquery needs ORDER BY, and no DISTINCT")
    skipped = select.args["offset"].expression.copy() if select.args.get("offset") else ZERO.copy()
    place = exp.Window(
        this=exp.Anonymous(this="row_number"),
        partition_by=[key.this.copy() for key in keys],
        order=order.copy(),
        over="OVER",
    )
    for name in ("order", "limit", "offset"):
        select.set(name, None)
    names = [item.alias_or_name for item in select.expressions]
    select.set("expressions", [*select.expressions, exp.alias_(place, PLACE)])
    number = exp.column(PLACE, ROWS)
    last = exp.Literal.number(int(skipped.name) + int(limit.expression.name))
    first = exp.GT(this=number.copy(), expression=skipped)
    asked = exp.And(this=first, expression=exp.LTE(this=number, expression=last))
    return select_from(select, ROWS, names, [asked])


def select_from(
    select: exp.Select, alias: str, names: Sequence[str], conditions: Sequence[Tree]
) -> exp.Select:
    """Return columns of a query's rows that meet conditions, as a query."""
    rows = exp.Subquery(this=select, alias=exp.TableAlias(this=exp.to_identifier(alias)))
    shown = [exp.alias_(exp.column(name, alias), name) for name in names]
    where = exp.Where(this=both(conditions)) if conditions else None
    return exp.Select(expressions=shown, from_=exp.From(this=rows), where=where)


def open_conditions(select: exp.Select, alias: str) -> exp.Select:
    """Return a correlated query as rows of an uncorrelated one, with the correlation in WHERE."""
    found = untie_query(select)
    names = [item.alias_or_name for item in select.expressions]
    return select_from(found.select, alias, names, found.tie(alias))


def loosen_query(select: exp.Select, alias: str, *, of_values: bool = True) -> exp.Select:
    """Return a correlated query of EXISTS or, `of_values`, of IN as rows of its FROM and WHERE."""
    found = _with_inner_exists(select.copy())
    found.set("distinct", None)
    if not of_values and not found.args.get("offset"):
        found.set("limit", None)
    if not of_values and found.args.get("group"):
        found.set("expressions", [])
    return open_conditions(found, alias) if is_closed(found) else found


def _with_inner_exists(select: exp.Select) -> exp.Select:
    """Return a query that joins the tables of an EXISTS in it which names tables further out."""
    where, own = select.args.get("where"), own_tables(select)
    for test in [c for c in conjuncts(where.this if where else None) if isinstance(c, exp.Exists)]:
        query = test.this.this if isinstance(test.this, exp.Subquery) else test.this
        if not isinstance(query, exp.Select) or is_closed(query) or is_closed(select):
            continue
        mine, (inner, outer) = own_tables(query), outer_conditions(query)
        joins = query.args.get("joins") or []
        is_further = any(tables_of(c) - mine - own for c in outer)
        if (
            is_further
            and not mine & own
            and all(not (j.side or j.kind or j.args.get("on")) for j in joins)
        ):
            test.replace(both([*inner, *outer]))
            for table in (query.args["from_"].this, *(join.this for join in joins)):
                select.append("joins", exp.Join(this=table.copy(), kind="CROSS"))
    return select


def is_alone(select: Tree) -> bool:
    """True if the query names no column of an outer one."""
    tables = {t.alias_or_name for t in select.find_all(exp.Table, exp.Subquery)}
    return {c.table for c in columns_in(select) if c.table} <= tables


def with_totals(tree: Tree) -> Tree:
    """Return an expression in which EXISTS and IN compare the value of a correlated aggregate."""
    holder = exp.Paren(this=tree.copy())
    for node in [*holder.find_all(exp.Exists, exp.In)]:
        query = node.this if isinstance(node, exp.Exists) else node.args.get("query")
        select = query.this if isinstance(query, exp.Subquery) else query
        if (
            _is_outermost(node)
            and select is not None
            and is_total(select)
            and outer_conditions(select)[1]
        ):
            node.replace(exp.Paren(this=_of_total(node, select)))
    found: Tree = holder.this
    return found


def _of_total(node: Tree, select: exp.Select) -> Tree:
    total, having = select.copy(), select.args.get("having")
    total.set("having", None)
    if isinstance(node, exp.Exists):
        if having is None:
            return exp.Boolean(this=True)
        shown = exp.Case(
            ifs=[exp.If(this=having.this.copy(), true=ONE.copy())], default=ZERO.copy()
        )
        value: Tree = ONE.copy()
    elif having is None and not isinstance(node.this, exp.Tuple):
        shown, value = select.expressions[0].unalias().copy(), node.this.copy()
    else:
        raise Refused(node, "IN over a correlated aggregate compares one value, without HAVING")
    total.set("expressions", [exp.alias_(shown, "total")])
    return exp.EQ(this=value, expression=exp.Subquery(this=total))


def count_rows(tree: Tree) -> Tree:
    """Return a copy of an expression with scalar subqueries instead of EXISTS and IN."""
    holder = exp.Paren(this=tree.copy())
    for negation in [n for n in holder.find_all(exp.Not) if _is_outermost(n)]:
        _push_down(negation)
    for node in [n for n in holder.find_all(exp.Exists, exp.In) if _is_outermost(n)]:
        if isinstance(node, exp.Exists):
            node.replace(exp.Paren(this=_is_any(_count(node.this, []))))
        elif isinstance(node, exp.In) and node.args.get("query"):
            negated = isinstance(node.parent, exp.Not)
            node.replace(exp.Paren(this=_among(node, may_be_unknown=negated)))
    found: Tree = holder.this
    return found


def _push_down(negation: Tree) -> None:
    """Put a negation before each part of an AND or OR in which a query occurs."""
    inner = negation.this.unnest()
    if isinstance(inner, exp.In):
        negation.set("this", inner)
    elif not inner.find(exp.In):
        return
    elif isinstance(inner, exp.And | exp.Or):
        parts = [exp.Not(this=exp.Paren(this=p.copy())) for p in (inner.this, inner.expression)]
        turned = exp.Or if isinstance(inner, exp.And) else exp.And
        negation.replace(exp.Paren(this=turned(this=parts[0], expression=parts[1])))
        for part in parts:
            _push_down(part)
    elif isinstance(inner, exp.Not):
        negation.replace(exp.Paren(this=inner.this.copy()))


def _is_outermost(node: Tree) -> bool:
    return node.find_ancestor(exp.Select, exp.SetOperation) is None


def _is_any(count: Tree) -> Tree:
    return exp.GT(this=count, expression=ZERO.copy())


def _among(node: exp.In, *, may_be_unknown: bool) -> Tree:
    """Return `x IN (query)`; where it is negated, true also if a null leaves it open."""
    value, query = node.this, _open(node.args["query"])
    select = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(select, exp.Query) or len(select.selects) != 1 or has_aggregates([value]):
        raise Refused(
            node,
            "IN inside another condition must compare one column, no aggregate, with one column",
        )
    (column,) = (item.unalias() for item in select.selects)
    equal = exp.EQ(this=column.copy(), expression=value.copy())
    found = _is_any(_count(query, [equal]))
    if not may_be_unknown:
        return found
    both = exp.And(this=is_null(value), expression=_is_any(_count(query, [])))
    unknown = exp.Or(this=both, expression=_is_any(_count(query, [is_null(column)])))
    return exp.Or(this=found, expression=unknown)


def _count(query: Tree, more: list[Tree]) -> Tree:
    """Return the number of a subquery's rows that meet further conditions, as a subquery."""
    query = _open(query)
    select = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(select, exp.Select) or is_closed(select):
        what = "EXISTS and IN over a query with groups, DISTINCT, LIMIT or a set operation"
        raise Refused(
            query, f"{what} are supported as conditions of WHERE, not inside other conditions"
        )
    found = select.copy()
    found.set("expressions", [call_of("count", exp.Star())])
    found.set("order", None)
    for condition in more:
        where = found.args.get("where")
        both = (
            exp.And(this=exp.Paren(this=where.this), expression=condition) if where else condition
        )
        found.set("where", exp.Where(this=both))
    return exp.Subquery(this=found)


def _open(query: Tree) -> Tree:
    """Return a query as a SELECT from it, to which conditions can be added."""
    select = query.this if isinstance(query, exp.Subquery) else query
    is_open = isinstance(select, exp.Select) and not is_closed(select)
    if is_open or not isinstance(select, exp.Query):
        return query
    if not is_alone(select):
        return loosen_query(select, GROUPS) if isinstance(select, exp.Select) else query
    rows = exp.Subquery(
        this=select.copy(), alias=exp.TableAlias(this=exp.to_identifier(COUNTED_ROWS))
    )
    shown = [exp.column(name, COUNTED_ROWS) for name in select.named_selects]
    return exp.Select(expressions=shown, from_=exp.From(this=rows))


def not_in_any(values: Sequence[Tree], rows: str) -> Iterator[Tree]:
    """Yield the conditions that together are NOT IN. `rows`: name of a shared query."""
    pairs = [(v, exp.column(n, rows)) for v, n in zip(values, NAMES, strict=False)]
    for equal in _parts(pairs):
        others = [pair for pair in pairs if pair not in equal]
        if equal:
            same = [exp.EQ(this=value.copy(), expression=mine.copy()) for value, mine in equal]
            nulls = [
                exp.Or(this=is_null(value), expression=is_null(mine)) for value, mine in others
            ]
            either = [exp.Paren(this=null) for null in nulls]
            yield exp.Not(this=_exists(rows, [*same, *either]))
            continue
        for absent in _parts(pairs):
            outer = [is_null(value) for value, mine in pairs if (value, mine) not in absent]
            some = _exists(rows, [is_null(mine) for _, mine in absent])
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
