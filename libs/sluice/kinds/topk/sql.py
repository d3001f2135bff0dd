"""A top-k written as SQL, read into the fields of its declaration.

Two forms are accepted: QUALIFY, and a numbered subquery (or WITH) limited by an outer WHERE.
Anything else in the SQL is refused with its name, so that nothing is silently ignored.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp

from sluice.kinds.topk.bounds import bounds_of, is_rank, refused
from sluice.kinds.topk.rank_key import RankKey
from sluice.kinds.topk.spelling import respelled
from sluice.language import syntax
from sluice.language.expression import Expression
from sluice.language.named import Named

RANKINGS = ("row_number", "rank", "dense_rank")
WORDS = {
    "with_": "WITH",
    "from_": "FROM",
    "joins": "JOIN",
    "group": "GROUP BY",
    "order": "ORDER BY",
    "windows": "WINDOW",
}


def read_topk(text: str) -> dict[str, Any]:
    """Return the fields that the SQL declares; ValueError names an unsupported part."""
    outer = syntax.parse_as(text.rstrip().removesuffix(";"), None)
    if not isinstance(outer, exp.Select):
        raise refused(type(outer).__name__.upper())
    outer = respelled(outer)
    if outer.args.get("qualify"):
        _refuse_others(outer, "expressions", "from_", "where", "qualify")
        return _fields(outer, outer, outer.args["qualify"].this)
    _refuse_others(outer, "expressions", "from_", "where")
    inner = _source(outer)
    if not isinstance(inner, exp.Subquery) or not isinstance(inner.this, exp.Select):
        raise refused("a query without a ranked subquery or QUALIFY")
    for name, value in inner.args.items():
        if value and name not in ("this", "alias"):
            raise refused(name.upper())
    _refuse_others(inner.this, "expressions", "from_", "where")
    if not outer.args.get("where"):
        raise refused("a query without WHERE rank <= k")
    return _fields(inner.this, outer, outer.args["where"].this)


def _refuse_others(select: exp.Select, *allowed: str) -> None:
    for name, value in select.args.items():
        if value and name not in allowed:
            raise refused(WORDS.get(name, name.upper()))


def _source(select: exp.Select) -> syntax.Tree:
    source = select.args.get("from_")
    if source is None:
        raise refused("a query without FROM")
    tree: syntax.Tree = source.this
    if tree.args.get("joins"):
        raise refused("JOIN")
    return tree


def _fields(inner: exp.Select, outer: exp.Select, condition: syntax.Tree) -> dict[str, Any]:
    window, rank = _ranking(inner, condition)
    bounds = bounds_of(condition, rank)
    shown = _projection(inner)
    chosen = shown if outer is inner else _chosen(outer, shown, rank)
    return {
        "from": _table(_source(inner)),
        "where": _condition(inner),
        "function": window.this.name.lower(),
        "partition_by": tuple(_partition(window, chosen, shown)),
        "order_by": tuple(RankKey.of(key) for key in _order(window)),
        "limit": bounds.limit,
        "offset": bounds.first - 1,
        "select": chosen,
        "rank": rank if outer is inner or rank is None else _rank_shown(outer, rank),
    }


def _condition(inner: exp.Select) -> Expression | None:
    """Return the condition for the rows that are ranked."""
    where = inner.args.get("where")
    if where is None:
        return None
    syntax.check(where.this)
    return Expression.of(where.this)


def _table(tree: syntax.Tree) -> str:
    if not isinstance(tree, exp.Table) or not isinstance(tree.this, exp.Identifier):
        raise refused("an input that is not a table")
    for name, value in tree.args.items():
        if value and name not in ("this", "db"):
            raise refused("an alias of the input" if name == "alias" else name.upper())
    return f"{tree.db}.{tree.name}" if tree.db else tree.name


def _ranking(inner: exp.Select, condition: syntax.Tree) -> tuple[exp.Window, str | None]:
    """Return the one window function, from the select list or QUALIFY, and its name."""
    named = [
        (item.this, item.alias.lower())
        for item in inner.expressions
        if isinstance(item, exp.Alias) and isinstance(item.this, exp.Window)
    ]
    found: list[tuple[exp.Window, str | None]] = [*named]
    found += [(window, None) for window in condition.find_all(exp.Window)]
    if len({syntax.render(window) for window, _ in found}) != 1 or len(named) > 1:
        raise refused("a query without exactly one ranking function")
    window, rank = found[0]
    if window.this.name.lower() not in RANKINGS or window.this.expressions:
        raise refused(f"{syntax.render(window.this)} in place of {', '.join(RANKINGS)}")
    for name, value in window.args.items():
        if value and name not in ("this", "partition_by", "order", "over"):
            raise refused("a window's frame" if name == "spec" else f"a window's {name}")
    return window, rank


def _order(window: exp.Window) -> list[syntax.Tree]:
    order = window.args.get("order")
    if order is None:
        raise refused("a ranking without ORDER BY")
    keys: list[syntax.Tree] = order.expressions
    return keys


def _projection(select: exp.Select) -> dict[str, Expression] | None:
    """Return the selected columns without the ranking; None for all of them (`*`)."""
    items = [item for item in select.expressions if not isinstance(item.unalias(), exp.Window)]
    if any(isinstance(item, exp.Star) for item in items):
        if len(items) > 1:
            raise refused("other columns beside *")
        _refuse_in_star(items[0])
        return None
    return dict(_item(item) for item in items)


def _refuse_in_star(star: syntax.Tree) -> None:
    found = [name.removesuffix("_").upper() for name, value in star.args.items() if value]
    if found:
        raise refused(f"* {found[0]}")


def _item(item: syntax.Tree) -> tuple[str, Expression]:
    tree = item.unalias()
    syntax.check(tree)
    if not item.alias and not isinstance(tree, exp.Column):
        raise refused(f"{syntax.render(item)} without a name (AS ...)")
    return item.alias or tree.name, Expression.of(tree)


def _chosen(
    outer: exp.Select, shown: Mapping[str, Expression] | None, rank: str | None
) -> dict[str, Expression] | None:
    """Return the outer query's columns as expressions over the input."""
    chosen = _projection(outer)
    if chosen is None:
        return None if shown is None else dict(shown)
    chosen = {name: tree for name, tree in chosen.items() if tree.plain_column != rank}
    if shown is None:
        return chosen
    return {name: _through(tree, shown) for name, tree in chosen.items()}


def _through(expression: Expression, shown: Mapping[str, Expression]) -> Expression:
    column = expression.plain_column
    if column is None or column not in shown:
        raise refused(f"{expression.text!r} over a subquery that does not select just that")
    return shown[column]


def _rank_shown(outer: exp.Select, rank: str) -> str | None:
    """Return the name under which an outer query selects the rank."""
    items = outer.expressions
    if any(isinstance(item, exp.Star) for item in items):
        return rank
    found = [item for item in items if is_rank(item.unalias(), rank)]
    if len(found) > 1:
        raise refused("the rank under several names")
    return found[0].alias_or_name.lower() if found else None


def _partition(window: exp.Window, *selected: Mapping[str, Expression] | None) -> Iterator[Named]:
    """Yield the partition's expressions, with their names in SELECT, if any."""
    for tree in window.args.get("partition_by") or ():
        syntax.check(tree)
        expression = Expression.of(tree)
        shown = [name for s in selected for name, e in (s or {}).items() if e.sql == expression.sql]
        name = next(iter(shown), expression.plain_column)
        if name is None:
            raise refused(f"PARTITION BY {expression.sql} without selecting it under a name")
        yield Named(name=name, expression=expression)
