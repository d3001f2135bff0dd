"""Queries inside conditions and expressions: EXISTS, IN, and scalar ones.

Their values have aliases in upper case, such as S1, which no parsed query contains. A subquery may
be tied to the outer query by more than equalities: `o.k = p.k AND p.v < o.v`. Its rows are joined
to the distinct values that the outer rows have in these conditions. An outer row with a null among
them matches none, which needs conditions that are never true of a null. Values of uncorrelated
scalar subqueries are joined to groups once these are formed.
"""

from collections.abc import Iterable, Mapping

from sqlglot import exp

from sluice.kinds.sql import correlated
from sluice.kinds.sql.clauses import LATER, GroupedNames, groups_of
from sluice.kinds.sql.correlated import NAMES, is_alone, not_in_any
from sluice.kinds.sql.joining import (
    JoinedSources,
    Planner,
    equalities,
    join_sources,
    prefix_columns,
)
from sluice.kinds.sql.relations import AnyRows, DistinctRows, QueryRows, StoredRows
from sluice.kinds.sql.trees import (
    Refused,
    call_of,
    columns_in,
    has_aggregates,
    has_query,
    is_aggregate,
    is_count,
    is_null,
    key_of,
    own_sources,
    own_tables,
    sql,
    substitute,
    tables_of,
)
from sluice.language import syntax
from sluice.language.syntax import Tree

STRICT = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Like),
    *(exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg),
    *(exp.Interval, exp.Var),
)


def keep(joined: JoinedSources, condition: Tree) -> None:
    """Keep the rows that meet a condition with a query in it."""
    if not has_query(condition):
        what = f"{syntax.render(condition)!r} names a table of an outer query"
        raise Refused(condition, f"{what}, which such a subquery can't")
    inner = correlated.with_totals(condition).unnest()
    is_negated = isinstance(inner, exp.Not)
    test = inner.this.unnest() if is_negated else inner
    if isinstance(test, exp.Exists):
        _semi(joined, test.this, [], is_negated=is_negated)
    elif isinstance(test, exp.In) and test.args.get("query"):
        query = test.args["query"]
        if is_negated:
            _not_in(joined, test)
        else:
            values = test.this.expressions if isinstance(test.this, exp.Tuple) else [test.this]
            _semi(joined, query, values, is_negated=False)
    else:
        replaced = with_scalars(joined, {"condition": inner})["condition"]
        joined.rows = joined.rows.filter([joined.rows.resolve(replaced)])


def filter_before_joins(select: exp.Select, conditions: list[Tree]) -> list[Tree]:
    """Put each `t.x IN (query)` into a query of `t` in FROM, so that fewer rows of `t` are joined.

    Return the other conditions. All stay if a join keeps rows without a match.
    """
    joins = select.args.get("joins") or ()
    if not joins or select.args.get("laterals") or not all(map(_is_inner, joins)):
        return conditions
    tested = {id(c): table for c in conditions if (table := _table_to_filter(select, c))}
    for table in {id(table): table for table in tested.values()}.values():
        alias = table.alias_or_name
        names = dict.fromkeys(c.name for c in columns_in(select) if c.table == alias)
        found = exp.Select(
            expressions=[exp.alias_(exp.column(name, alias), name) for name in names],
            from_=exp.From(this=table.copy()),
        )
        mine = (c for c in conditions if tested.get(id(c)) is table)
        table.replace(exp.alias_(found.where(*mine).subquery(), alias, table=True))
    return [c for c in conditions if id(c) not in tested]


def _is_inner(join: exp.Join) -> bool:
    return not join.side and join.kind.upper() in ("", "INNER", "CROSS")


def _table_to_filter(select: exp.Select, condition: Tree) -> Tree | None:
    """Return the only table whose values a condition looks for in a query; or None."""
    query = condition.args.get("query") if isinstance(condition, exp.In) else None
    if query is None or not is_alone(_query_of(query)):
        return None
    tables = tables_of(condition.this)
    found = (t for t in own_sources(select) if {t.alias_or_name} == tables)
    return next((t for t in found if isinstance(t, exp.Table) and not t.args.get("joins")), None)


def _not_in(joined: JoinedSources, test: exp.In) -> None:
    """Keep the rows whose value is not in a subquery; nulls may make that unknown."""
    query = test.args["query"]
    select = _query_of(query)
    if isinstance(test.this, exp.Tuple):
        _none_of(joined, test.this.expressions, select)
        return
    if isinstance(select, exp.Select) and not is_alone(select):
        condition = with_scalars(joined, {"condition": exp.Not(this=test.copy())})["condition"]
        joined.rows = joined.rows.filter([joined.rows.resolve(condition)])
        return
    value = test.this.copy()
    joined.after.append(value)
    _semi(joined, query.copy(), [value], is_negated=True)
    alias = f"S{joined.planner.chain.number()}"
    rows = joined.planner.query(select.copy())
    (name,) = rows.columns
    stored = joined.planner.chain.store(rows)
    counts = {"n": exp.Star(), "known": stored.columns[name]}
    counted = {n: call_of("count", tree.copy()) for n, tree in counts.items()}
    seen = _summarize(joined, stored, counted, alias)
    zero = exp.Literal.number(0)
    is_sure = exp.And(
        this=exp.Not(this=is_null(value)),
        expression=exp.EQ(this=seen["n"].copy(), expression=seen["known"].copy()),
    )
    known = exp.Or(this=exp.EQ(this=seen["n"].copy(), expression=zero), expression=is_sure)
    joined.rows = joined.rows.filter([joined.rows.resolve(known)])


def _none_of(joined: JoinedSources, values: list[Tree], select: Tree) -> None:
    """Keep the rows whose combination of values is not in a subquery."""
    if not is_alone(select):
        raise Refused(
            select, "a correlated NOT IN of several columns is not supported: write NOT EXISTS"
        )
    if len(values) > len(NAMES):
        raise Refused(select, f"NOT IN of more than {len(NAMES)} columns: write NOT EXISTS")
    planner = joined.planner
    name = f"N{planner.chain.number()}"
    rows = planner.chain.store(planner.query(select.copy()))
    own = dict(zip(NAMES, rows.columns.values(), strict=False))
    planner.shared[name] = rows.show(own)
    for condition in not_in_any(values, name):
        joined.after.append(condition)
        keep(joined, condition)


def _summarize(
    joined: JoinedSources, rows: StoredRows, aggregates: Mapping[str, Tree], alias: str
) -> dict[str, Tree]:
    """Join aggregates of all of a subquery's rows to every row; return their columns by name."""
    groups = groups_of(joined.planner.chain, rows, {}, aggregates)
    whole = QueryRows(groups, {name: exp.column(name) for name in aggregates})
    seen: dict[str, Tree] = {name: exp.column(name, alias) for name in aggregates}
    joined.after += [*seen.values()]
    joined.join(prefix_columns(whole, alias), {alias}, "inner", [], [])
    return seen


def _query_of(tree: Tree) -> Tree:
    return tree.this if isinstance(tree, exp.Subquery) else tree


def _semi(joined: JoinedSources, query: Tree, values: list[Tree], *, is_negated: bool) -> None:
    """Keep the rows that a subquery has a row for, or has none."""
    select = _query_of(query)
    type_ = "anti" if is_negated else "semi"
    planner = joined.planner
    alias = f"S{planner.chain.number()}"
    if isinstance(select, exp.Select) and not is_alone(select):
        select = correlated.loosen_query(select, f"G{alias}", of_values=bool(values))
    if not isinstance(select, exp.Select) or correlated.is_closed(select):
        rows = planner.query(select)
        on: list[Tree] = [
            exp.EQ(this=value, expression=exp.column(name, alias))
            for value, name in zip(values, rows.columns, strict=True)
        ]
        if on:
            joined.join(prefix_columns(rows, alias), {alias}, type_, on, [])
        else:
            _if_any(joined, rows, alias, is_negated=is_negated)
        return
    inner, outer_conditions = tied_rows(joined, select)
    outputs = [item.unalias() for item in select.expressions] if values else []
    pairs = [
        exp.EQ(this=v.copy(), expression=o.copy()) for v, o in zip(values, outputs, strict=True)
    ]
    names = _flat_names(inner)
    own = {name: exp.column(flat, alias) for name, flat in names.items()}
    on = [substitute(condition, own) for condition in (*pairs, *outer_conditions)]
    if on:
        flat = inner.show({names[n]: t for n, t in inner.columns.items()})
        joined.join(prefix_columns(flat, alias), {alias}, type_, on, [])
    else:
        _if_any(joined, inner, alias, is_negated=is_negated)


def _if_any(joined: JoinedSources, rows: AnyRows, alias: str, *, is_negated: bool) -> None:
    """Keep all rows if a subquery has any row, or has none."""
    stored = joined.planner.chain.store(rows, [])
    counted = {"n": call_of("count", exp.Star())}
    seen = _summarize(joined, stored, counted, alias)
    compared = exp.EQ if is_negated else exp.GT
    condition = compared(this=seen["n"], expression=exp.Literal.number(0))
    joined.rows = joined.rows.filter([joined.rows.resolve(condition)])


def tied_rows(outside: JoinedSources, select: exp.Select) -> tuple[AnyRows, list[Tree]]:
    """Return the rows of a subquery's FROM and WHERE, and the conditions that name outer tables."""
    inner, outer = correlated.outer_conditions(select)
    known = outside.aliases | own_tables(select)
    if beyond := next((c for c in outer if not tables_of(c) <= known), None):
        what = f"{syntax.render(beyond)!r} reads a table that is not in the query directly outside"
        raise Refused(beyond, f"{what}: join that table in this subquery")
    after = [*(i.unalias() for i in select.expressions if not isinstance(i, exp.Star)), *outer]
    joins = [join for join in select.args.get("joins") or () if join.side and join.args.get("on")]
    _check_own([join.args["on"] for join in joins], outside, "in ON of an outer join")
    with outside.planner.sharing(select):
        joined, rest = join_sources(outside.planner, select, inner, after)
        for condition in rest:
            keep(joined, condition)
    return joined.rows, outer


def _check_own(trees: Iterable[Tree], outside: JoinedSources, where: str) -> None:
    """Refuse columns of the outer query in a part of a subquery that can't be tied to it."""
    for column in (c for tree in trees for c in columns_in(tree)):
        if column.table in outside.aliases:
            what = f"{syntax.render(column)} of the outer query {where} is not supported"
            raise Refused(column, f"{what}: name it in WHERE, or join the tables")


def _flat_names(rows: AnyRows) -> dict[str, str]:
    """Return a name without a dot for each `table.column`."""
    names: dict[str, str] = {}
    for name in rows.columns:
        flat = name.replace(".", "__")
        while flat in names.values():  # `a.b__c` and `a__b.c`
            flat += "_"
        names[name] = flat
    return names


def with_scalars(joined: JoinedSources, trees: dict[str, Tree]) -> dict[str, Tree]:
    """Join every scalar subquery; return the expressions with columns in their place."""
    trees = {n: correlated.count_rows(correlated.with_totals(tree)) for n, tree in trees.items()}
    while found := next((n for n in trees if trees[n].find(exp.Subquery)), None):
        holder = exp.Paren(this=trees[found])
        subquery = next(s for s in holder.find_all(exp.Subquery, bfs=True))
        alias = f"S{joined.planner.chain.number()}"
        subquery.replace(scalar(joined, subquery, alias))
        trees[found] = holder.this
    return trees


def scalar(joined: JoinedSources, subquery: exp.Subquery, alias: str) -> Tree:
    """Join the groups of a correlated aggregate; return the expression of its value."""
    select = subquery.this
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        raise Refused(subquery, "a scalar subquery must be one SELECT of one column")
    item = select.expressions[0].unalias()
    if select.args.get("from_") is None and not has_aggregates([item]):
        return exp.Paren(this=with_scalars(joined, {"item": item.copy()})["item"])
    is_first = correlated.is_limited_to_one(select)
    if is_first and is_alone(select):
        return _only(joined, select, alias)
    if is_first:
        select = correlated.open_conditions(select, f"G{alias}")
        item = select.expressions[0].unalias()
    inner, outer = tied_rows(joined, select)
    _check_own([item], joined, "in the value of a subquery")
    own = own_tables(select)
    pairs, others = equalities(outer, joined.aliases, own)
    if not is_first:
        _check_single(joined, select, item, inner, [] if others else [b for _, b in pairs])
    if not has_aggregates([item]):
        item = call_of("max", item)
    if others:
        inner, pairs = match_tied(joined, item, inner, own, outer)
    wanted = {key_of(c) for tree in [item, *(b for _, b in pairs)] for c in columns_in(tree)}
    stored = joined.planner.chain.store(inner, wanted)
    keys = {f"k{i}": stored.resolve(b) for i, (_, b) in enumerate(pairs)}
    places = GroupedNames({}, stored)
    value = places.place(item)
    if not pairs:
        seen = _summarize(joined, stored, places.aggregates, alias)
        return exp.Paren(this=substitute(value, seen))
    groups = QueryRows(
        groups_of(joined.planner.chain, stored, keys, places.aggregates),
        {n: exp.column(n) for n in (*keys, *places.aggregates)},
    )
    on = [
        exp.EQ(this=a.copy(), expression=exp.column(f"k{i}", alias))
        for i, (a, _) in enumerate(pairs)
    ]
    seen = {name: exp.column(name, alias) for name in places.aggregates}
    joined.after += [*seen.values()]
    joined.join(prefix_columns(groups, alias), {alias}, "left", on, [])
    is_grouped = bool(select.args.get("group"))  # then there is no row, not a count of 0
    counts = {n for n, t in places.aggregates.items() if is_count(t) and not is_grouped}
    zero = exp.Literal.number(0)
    values = {n: call_of("coalesce", c, zero) if n in counts else c for n, c in seen.items()}
    return exp.Paren(this=substitute(value, values))


def _check_single(
    joined: JoinedSources, select: exp.Select, item: Tree, inner: AnyRows, keys: list[Tree]
) -> None:
    """Refuse a scalar subquery that may return several rows for one row of the outer query."""
    if any(select.args.get(a) for a in ("having", "distinct", "limit", "offset")):
        raise Refused(
            select, "a scalar subquery with HAVING, DISTINCT or LIMIT is not supported yet"
        )
    group = select.args.get("group")
    by = {sql(key) for key in (group.expressions if group else ())}
    if group and (not by or not by <= {sql(key) for key in keys}):
        raise Refused(select, "a scalar subquery with GROUP BY may give several rows")
    uniqueness = joined.planner.chain.known_of(inner)
    named = [key_of(key) for key in keys if isinstance(key, exp.Column)]
    if not has_aggregates([item]) and not uniqueness.are_unique_by(named):
        raise Refused(select, "a scalar subquery without an aggregate may give several rows")


def _only(joined: JoinedSources, select: exp.Select, alias: str) -> Tree:
    """Join the value of the one row that a LIMIT leaves, null if there is none."""
    rows = joined.planner.query(select.copy())
    (name,) = rows.columns
    stored = joined.planner.chain.store(rows)
    value = call_of("max", stored.columns[name].copy())
    return exp.Paren(this=_summarize(joined, stored, {"v": value}, alias)["v"])


def match_tied(
    joined: JoinedSources, item: Tree, inner: AnyRows, own: set[str], conditions: list[Tree]
) -> tuple[AnyRows, list[tuple[Tree, Tree]]]:
    """Return the subquery's rows with the outer values that they match, and pairs of these."""
    _check_strict(joined, own, conditions)
    outer = [
        *{key_of(c): c for c in _tied_columns(conditions) if c.table in joined.aliases}.values()
    ]
    joined.after += [column.copy() for column in outer]
    joined.rows = rows = joined.side()
    values = {f"d{i}": rows.columns[key_of(column)] for i, column in enumerate(outer)}
    seen = DistinctRows(rows.source, values, rows.where)
    names = {key_of(column): exp.column(f"d{i}") for i, column in enumerate(outer)}
    after: list[Tree] = [item, *outer]
    inside = JoinedSources(joined.planner, QueryRows(seen, names), joined.aliases, [], after)
    inside.join(inner, own, "inner", [c.copy() for c in conditions], [])
    return inside.rows, [(column.copy(), column.copy()) for column in outer]


def _check_strict(joined: JoinedSources, own: set[str], conditions: list[Tree]) -> None:
    pairs, others = equalities(conditions, joined.aliases, own)
    if not pairs:
        raise Refused(others[0], "a scalar subquery needs an equality to the outer query")
    for condition in conditions:
        for node in condition.walk():
            if not isinstance(node, STRICT):
                what = "this condition on the outer query is not supported; compare plain values"
                raise Refused(condition, what)
        if not {c.table for c in _tied_columns([condition])} <= joined.aliases | own:
            what = "a subquery's condition names a table that is neither its own nor just outside"
            raise Refused(condition, what)


def _tied_columns(trees: Iterable[Tree]) -> list[exp.Column]:
    return [column for tree in trees for column in columns_in(tree)]


def defer_queries(trees: dict[str, Tree]) -> tuple[dict[str, Tree], dict[str, exp.Subquery]]:
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
    seen = {name: joined.rows.resolve(value) for name, value in values.items()}
    seen |= {name: joined.rows.columns[f"_.{name}"] for name in places}
    shown = {name: substitute(tree, seen) for name, tree in rows.columns.items()}
    return joined.rows.show(shown)
