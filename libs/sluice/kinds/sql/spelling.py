"""Spellings of SQL that mean what others say, turned into these when a query is read."""

from sqlglot import exp

from sluice.kinds.sql.refusal import Refused
from sluice.language.syntax import TAKES_A_PART, Tree

LISTS = ("collect_list", "array_agg")


def respell(query: Tree) -> None:
    """Give each meaning in a query one spelling."""
    for select in query.find_all(exp.Select):
        select.set("hint", None)  # advice to an optimizer, which changes no row
    for node in [*query.walk()]:
        _step(node)


def _step(node: Tree) -> None:
    if isinstance(node, exp.NullSafeNEQ):
        same = exp.NullSafeEQ(this=node.this, expression=node.expression)
        node.replace(exp.Paren(this=exp.Not(this=exp.Paren(this=same))))
    if isinstance(node.args.get("expression"), exp.Any | exp.All):
        _compare_with_each(node)
    if isinstance(node, exp.In) and isinstance(node.this, exp.Tuple) and not node.args.get("query"):
        widths = {len(value.expressions) for value in node.expressions}
        if widths != {len(node.this.expressions)}:
            raise Refused(node, "IN compares values of different numbers of columns")
        node.set("this", _struct(node.this))
        node.set("expressions", [_struct(value) for value in node.expressions])
    if isinstance(node, exp.Anonymous) and node.expressions:
        _respell(node, node.name.lower())


def _compare_with_each(node: Tree) -> None:
    """Write `x LIKE ANY (...)` as alternatives, and `x LIKE ALL (...)` as conditions."""
    each = node.expression
    if each.find(exp.Select, exp.SetOperation) or not isinstance(node, exp.Like | exp.ILike):
        what = f"{type(each).__name__.upper()} (subquery) is no Spark SQL"
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
    """Give a list that is sorted later an order of its own, so that it depends on none."""
    (value,) = call.expressions
    if not isinstance(value, exp.Order | exp.Distinct):
        key = exp.Ordered(this=value.copy(), nulls_first=True)
        call.set("expressions", [exp.Order(this=value, expressions=[key])])
