"""SQL spellings that are replaced by equivalent ones when a query is read."""

from sqlglot import exp

from sluice.kinds.sql.reading.trees import Refused
from sluice.language import syntax
from sluice.language.syntax import TAKES_A_PART, Tree

LISTS = ("collect_list", "array_agg")


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
    if _is_in_list(node) and isinstance(node.this, exp.Tuple):
        widths = {len(value.expressions) for value in node.expressions}
        if widths != {len(node.this.expressions)}:
            raise Refused(node, "IN compares values of different numbers of columns")
        node.set("this", _struct(node.this))
        node.set("expressions", [_struct(value) for value in node.expressions])
    if isinstance(node, exp.Anonymous) and node.expressions:
        _respell(node, node.name.lower())


def _is_in_list(node: Tree) -> bool:
    is_of_pivot = isinstance(node.parent, exp.Pivot)
    return isinstance(node, exp.In) and not node.args.get("query") and not is_of_pivot


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
    return exp.Anonymous(
        this="explode", expressions=[exp.Anonymous(this="sequence", expressions=bounds)]
    )


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
        first.set("expressions", [_known(first.expressions)])
    elif name == "sort_array" and isinstance(first, exp.Anonymous) and first.name.lower() in LISTS:
        _sort(first)


def _struct(tree: Tree) -> Tree:
    if not isinstance(tree, exp.Tuple):
        return tree
    names = (exp.Literal.string(f"c{i}") for i in range(len(tree.expressions)))
    fields = [part for pair in zip(names, tree.expressions, strict=True) for part in pair]
    return exp.Anonymous(this="named_struct", expressions=fields)


def _known(values: list[Tree]) -> Tree:
    """Return values together, or null if one of them is null."""
    together = exp.Anonymous(this="struct", expressions=values)
    nulls = [exp.Is(this=v.copy(), expression=exp.Null()) for v in values]
    ifs = [exp.If(this=null, true=exp.Null()) for null in nulls]
    return exp.Case(ifs=ifs, default=together)


def _sort(call: exp.Anonymous) -> None:
    """Give a list that is sorted later a fixed order, so that it depends on no other."""
    (value,) = call.expressions
    if not isinstance(value, exp.Order | exp.Distinct):
        key = exp.Ordered(this=value.copy(), nulls_first=True)
        call.set("expressions", [exp.Order(this=value, expressions=[key])])
