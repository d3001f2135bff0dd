"""SQL that is replaced by equivalent SQL: spellings, formulas of aggregates, and PIVOT.

Some aggregates are formulas of those of a cogroup: `corr`, `regr_slope`, `listagg`, `bit_or`. Those
of pairs take the rows that have both values. A covariance is the difference of two variances, which
are kept exactly. With a single value of x or y there is no line, and its slope is null. PIVOT is a
GROUP BY: a column for each value and aggregate, over the rows of that value.
"""

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from sluice.kinds.sql.trees import (
    Refused,
    call_of,
    columns_in,
    is_aggregate,
    is_null,
    shared_part,
    sql,
    substitute,
)
from sluice.language import syntax
from sluice.language.names import NAME
from sluice.language.syntax import AGGREGATES, TAKES_A_PART, Tree

LISTS = ("collect_list", "array_agg")

_COVARIANCE = "(var_pop(a + b) - var_pop(a - b)) / 4"
_SLOPE = f"CASE WHEN min(xs) < max(xs) THEN {_COVARIANCE} / var_pop(xs) END"
_IS_LINE = "min(xs) < max(xs) AND min(ys) < max(ys)"
_CORRELATION = f"{_COVARIANCE} / (stddev_pop(xs) * stddev_pop(ys))"
# a, b: the two arguments; xs, ys: b and a of the rows that have both
_OF_PAIRS: Mapping[str, str] = {
    "covar_pop": _COVARIANCE,
    "covar_samp": "(var_samp(a + b) - var_samp(a - b)) / 4",
    "corr": f"CASE WHEN {_IS_LINE} THEN {_CORRELATION} END",
    "regr_count": "count(a + b)",
    "regr_avgx": "avg(xs)",
    "regr_avgy": "avg(ys)",
    "regr_sxx": "var_pop(xs) * count(xs)",
    "regr_syy": "var_pop(ys) * count(ys)",
    "regr_sxy": f"{_COVARIANCE} * count(xs)",
    "regr_slope": _SLOPE,
    "regr_intercept": f"avg(ys) - ({_SLOPE}) * avg(xs)",
    "regr_r2": f"CASE WHEN {_IS_LINE} THEN ({_CORRELATION}) * ({_CORRELATION}) "
    "WHEN min(xs) < max(xs) THEN 1.0D END",
}
_OF_BITS: Mapping[str, str] = {
    "bit_and": "aggregate(collect_set(x), get(collect_set(x), 0), (t, e) -> t & e)",
    "bit_or": "aggregate(collect_set(x), get(collect_set(x), 0), (t, e) -> t | e)",
}
_TEXTS = ("listagg", "string_agg")
_LISTED = "CASE WHEN count(x) > 0 THEN array_join(collect_list(s ORDER BY o), d) END"
_LISTED_ONCE = "CASE WHEN count(x) > 0 THEN array_join(sort_array(collect_set(x), up), d) END"
_IN_GROUP = ("percentile_cont", "mode")


def respell(query: Tree) -> None:
    """Give each meaning in a query one spelling."""
    for select in query.find_all(exp.Select):
        select.set("hint", None)  # optimizer hints, which change no row
    for node in [*query.walk()]:
        _step(node)


def _step(node: Tree) -> None:
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
        _select_from_function(node, node.this)
    if isinstance(node, exp.Pivot) and node.arg_key != "pivots":
        raise Refused(node, "PIVOT is written in FROM, as in SELECT * FROM t PIVOT (...)")
    if isinstance(node, exp.NullSafeNEQ):
        same = exp.NullSafeEQ(this=node.this, expression=node.expression)
        node.replace(exp.Paren(this=exp.Not(this=exp.Paren(this=same))))
    if isinstance(node.args.get("expression"), exp.Any | exp.All):
        _compare_with_each(node)
    is_in_list = isinstance(node, exp.In) and not node.args.get("query")
    if is_in_list and isinstance(node.this, exp.Tuple) and not isinstance(node.parent, exp.Pivot):
        widths = {len(value.expressions) for value in node.expressions}
        if widths != {len(node.this.expressions)}:
            raise Refused(node, "IN compares values of different numbers of columns")
        node.set("this", _struct(node.this))
        node.set("expressions", [_struct(value) for value in node.expressions])
    if isinstance(node, exp.Anonymous) and node.expressions:
        _respell(node, node.name.lower())


def _select_from_function(table: exp.Table, call: exp.Anonymous) -> None:
    """Write `FROM explode(...) AS r (n)` and `FROM range(5)` as a query of an array's elements."""
    name = call.name.lower()
    if name not in ("explode", "range"):
        raise Refused(call, f"{name}(...) in FROM can't be maintained incrementally")
    given = table.args.get("alias") or exp.TableAlias()
    columns = [c.name for c in given.args.get("columns") or ()]
    array = _range(call) if name == "range" else call
    column = (columns or ["id" if name == "range" else "col"])[0]
    rows = exp.Select(expressions=[exp.alias_(array.copy(), column)])
    alias = exp.TableAlias(this=given.this or exp.to_identifier(name))
    query = exp.Subquery(this=rows, alias=alias)
    for arg in ("joins", "laterals", "pivots", "sample"):
        query.set(arg, table.args.get(arg))
    table.replace(query)


def _range(call: exp.Anonymous) -> Tree:
    """Return `range(first, end, step)` as an array, which includes its end."""
    if not 1 <= len(call.expressions) <= 3 or not all(n.is_int for n in call.expressions):
        raise Refused(call, "range(...) takes one to three whole numbers")
    numbers = [int(n.to_py()) for n in call.expressions]
    first, end, step = ([0, *numbers, 1] if len(numbers) == 1 else [*numbers, 1])[:3]
    each = range(first, end, step) if step else range(0)
    if not each:
        raise Refused(call, f"{syntax.render(call)} has no rows")
    bounds = [exp.cast(exp.Literal.number(n), "bigint") for n in (each[0], each[-1], step)]
    return call_of("explode", call_of("sequence", *bounds))


def _compare_with_each(node: Tree) -> None:
    """Write `x LIKE ANY (...)` as alternatives, and `x LIKE ALL (...)` as conditions."""
    each = node.expression
    if each.find(exp.Select, exp.SetOperation) or not isinstance(node, exp.Like | exp.ILike):
        what = f"{type(each).__name__.upper()} (subquery) is not Spark SQL"
        raise Refused(node, f"{what}: write IN or NOT IN, or compare with its min or max")
    listed = each.this.expressions if isinstance(each.this, exp.Tuple) else [each.this.unnest()]
    tests = []
    for pattern in listed:
        test = node.copy()
        test.set("expression", pattern.copy())
        tests.append(test)
    joined = exp.or_ if isinstance(each, exp.Any) else exp.and_
    node.replace(exp.Paren(this=joined(*tests, copy=False)))


def _respell(call: exp.Anonymous, name: str) -> None:
    first = call.expressions[0]
    if name in TAKES_A_PART and len(call.expressions) == 3 and isinstance(first, exp.Column):
        first.replace(exp.var(first.name))
    elif name == "count_if":
        call.set("this", "count")
        one = exp.Literal.number(1)
        call.set("expressions", [exp.Case(ifs=[exp.If(this=first, true=one)])])
    elif name == "count" and isinstance(first, exp.Distinct) and len(first.expressions) > 1:
        first.set("expressions", [_null_if_any(first.expressions)])
    elif name == "sort_array" and isinstance(first, exp.Anonymous) and first.name.lower() in LISTS:
        _sort(first)


def _struct(tree: Tree) -> Tree:
    if not isinstance(tree, exp.Tuple):
        return tree
    names = (exp.Literal.string(f"c{i}") for i in range(len(tree.expressions)))
    fields = [part for pair in zip(names, tree.expressions, strict=True) for part in pair]
    return call_of("named_struct", *fields)


def _null_if_any(values: list[Tree]) -> Tree:
    """Return values together, or null if one of them is null."""
    together = call_of("struct", *values)
    ifs = [exp.If(this=is_null(value), true=exp.Null()) for value in values]
    return exp.Case(ifs=ifs, default=together)


def _sort(call: exp.Anonymous) -> None:
    """Give a list that is sorted later a fixed order, so that it depends on no other."""
    (value,) = call.expressions
    if not isinstance(value, exp.Order | exp.Distinct):
        key = exp.Ordered(this=value.copy(), nulls_first=True)
        call.set("expressions", [exp.Order(this=value, expressions=[key])])


def with_formulas(query: Tree) -> None:
    """Put formulas in the place of aggregates; a window function of the same name stays."""
    for call in list(query.find_all(exp.Anonymous)):
        order = call.parent if isinstance(call.parent, exp.WithinGroup) else None
        formula = _formula(call, call.name.lower(), order)
        place = order or call
        where = place.parent if isinstance(place.parent, exp.Filter) else None
        if formula is not None and not isinstance((where or place).parent, exp.Window):
            found = _filter_aggregate(formula, where.expression if where else None)
            (where or place).replace(exp.Paren(this=found))


def _formula(call: exp.Anonymous, name: str, order: exp.WithinGroup | None) -> Tree | None:
    if name in _OF_PAIRS and len(call.expressions) == 2:
        return _of_pair(_OF_PAIRS[name], *call.expressions)
    if name in _OF_BITS and len(call.expressions) == 1:
        return _build(_OF_BITS[name], {"x": call.expressions[0]})
    if name in _TEXTS:
        return _list_texts(call, order)
    if name in _IN_GROUP and order:
        (key,) = order.expression.expressions
        if not key.args.get("desc"):
            plain = "percentile" if name == "percentile_cont" else name
            return call_of(plain, key.this, *call.expressions)
    if order:
        raise Refused(
            call, f"{sql(order)!r} is not supported: percentile_cont and mode sort ascending"
        )
    return None


def _of_pair(text: str, one: Tree, other: Tree) -> Tree:
    a, b = exp.cast(one.copy(), "double"), exp.cast(other.copy(), "double")
    known = [exp.Not(this=is_null(side)) for side in (one, other)]
    xs, ys = (
        exp.Case(ifs=[exp.If(this=known[0], true=b)]),
        exp.Case(ifs=[exp.If(this=known[1], true=a)]),
    )
    return _build(text, {"a": a, "b": b, "xs": xs, "ys": ys})


def _list_texts(call: exp.Anonymous, order: exp.WithinGroup | None) -> Tree:
    first, *rest = call.expressions
    is_distinct = isinstance(first, exp.Distinct)
    if is_distinct:
        first, *rest = first.expressions
    if order is None:
        raise Refused(call, f"{sql(call)!r} depends on the order: add WITHIN GROUP (ORDER BY ...)")
    keys = order.expression.expressions
    text, separator = exp.cast(first.copy(), "string"), rest[0] if rest else exp.Literal.string("")
    if not is_distinct:
        found = _build(_LISTED, {"x": first, "s": text, "d": separator})
        (ordered,) = found.find_all(exp.Order)
        ordered.set("expressions", [key.copy() for key in keys])
        return found
    if len(keys) != 1 or sql(keys[0].this) != sql(first):
        raise Refused(call, f"{sql(call)!r}: distinct strings can only be ordered by themselves")
    up = exp.Boolean(this=not keys[0].args.get("desc"))
    return _build(_LISTED_ONCE, {"x": text, "up": up, "d": separator})


def _build(formula: str, parts: Mapping[str, Tree]) -> Tree:
    return substitute(syntax.parse_as(formula, None), parts)


def _filter_aggregate(formula: Tree, where: Tree | None) -> Tree:
    """Return a formula whose aggregates use only the rows that meet a condition."""
    if where is None:
        return formula

    def step(node: Tree) -> Tree:
        if isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES:
            return exp.Filter(this=node.copy(), expression=where.copy())
        return node

    return formula.transform(step)


def pivot_to_groups(tree: exp.Query, columns: Mapping[str, Collection[str]]) -> None:
    """Write each PIVOT of a query as groups. `columns`: of the stored tables, by id.

    The query is resolved: each PIVOT has an alias. Raises Refused for UNPIVOT, and for a value
    without a column name.
    """
    for pivot in [*tree.find_all(exp.Pivot)]:
        source = pivot.parent
        if pivot.args.get("unpivot"):
            raise Refused(
                pivot, "UNPIVOT can't be maintained incrementally: write explode(array(...))"
            )
        assert isinstance(source, exp.Table | exp.Subquery)
        used = {c.name for part in (*pivot.expressions, *pivot.fields) for c in columns_in(part)}
        alias = source.alias_or_name
        names = _pivoted_columns(source, columns)
        keys: list[Tree] = [exp.column(n, alias) for n in names if n not in used]
        rows = source.copy()
        shown = [*(exp.alias_(k.copy(), k.name) for k in keys), *_value_name(pivot)]
        group = exp.Group(expressions=keys) if keys else None
        select = exp.Select(expressions=shown, from_=exp.From(this=rows), group=group)
        source.replace(exp.Subquery(this=select, alias=pivot.args["alias"].copy()))


def _pivoted_columns(
    source: exp.Table | exp.Subquery, columns: Mapping[str, Collection[str]]
) -> Collection[str]:
    if isinstance(source, exp.Subquery):
        return source.named_selects
    cte = shared_part(source)
    return cte.this.named_selects if cte else columns[f"{source.db}.{source.name}"]


def _value_name(pivot: exp.Pivot) -> Iterator[Tree]:
    """Yield the column of each value and aggregate, null where no row has that value."""
    names = iter(pivot.args["columns"])
    (field,) = pivot.fields
    for value in field.expressions:
        condition = _equals(field.this, value.unalias())
        for item in pivot.expressions:
            name = next(names).name
            if not NAME.fullmatch(name):
                what = f"{syntax.render(value)!r} of PIVOT has no usable column name"
                raise Refused(pivot, f"{what}: name the value or the aggregate with AS")
            is_there = exp.GT(
                this=_only_of_value(call_of("count", exp.Star()), condition),
                expression=exp.Literal.number(0),
            )
            found = exp.If(this=is_there, true=_only_of_value(item.unalias(), condition))
            yield exp.alias_(exp.Case(ifs=[found]), name)


def _equals(column: Tree, value: Tree) -> Tree:
    if isinstance(column, exp.Tuple) and isinstance(value, exp.Tuple):
        pairs = zip(column.expressions, value.expressions, strict=True)
        return exp.and_(*(_equals(one, other) for one, other in pairs), copy=False)
    return exp.NullSafeEQ(this=column.copy(), expression=value.copy())


def _only_of_value(tree: Tree, condition: Tree) -> Tree:
    """Return an expression whose aggregates use only the rows that meet that condition."""
    holder = exp.Paren(this=tree.copy())
    for call in [node for node in holder.walk() if is_aggregate(node)]:
        if not isinstance(call.parent, exp.Filter):
            where = exp.Where(this=condition.copy())
            call.replace(exp.Filter(this=call.copy(), expression=where))
    found: Tree = holder.this
    return found
