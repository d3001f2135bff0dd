"""A top-k written as SQL, read into the fields of its declaration.

Two spellings are known: a numbered subquery that an outer WHERE cuts off, and QUALIFY. Whatever
else the SQL asks for is refused by name, so that nothing written is silently left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from sluice.specs import syntax
from sluice.specs.expression import Expression
from sluice.specs.named import Named
from sluice.specs.rank_key import RankKey

FORM = (
    "write SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY p ORDER BY s DESC) AS rank "
    "FROM input) WHERE rank <= 10"
)
RANKINGS = ("row_number", "rank", "dense_rank")
WORDS = {
    "with_": "WITH",
    "from_": "FROM",
    "joins": "JOIN",
    "group": "GROUP BY",
    "order": "ORDER BY",
}


@dataclass(frozen=True)
class Bounds:
    """Which ranks are kept: first to last, or up to a column of the row."""

    first: int
    last: int | str

    @property
    def limit(self) -> int | str:
        if isinstance(self.last, str) and self.first > 1:
            raise refused("a first rank together with a limit from a column")
        return self.last if isinstance(self.last, str) else self.last - self.first + 1


def refused(part: str) -> ValueError:
    """That part of the SQL is not a top-k's."""
    return ValueError(f"{part} is not supported in a top-k's sql; {FORM}")


def read_topk(text: str) -> dict[str, Any]:
    """The declaration's fields that the SQL says; ValueError names what it should not."""
    outer = syntax.parse_as(text, None)
    if not isinstance(outer, exp.Select):
        raise refused(type(outer).__name__.upper())
    if outer.args.get("qualify"):
        _refuse_others(outer, "expressions", "from_", "qualify")
        return _fields(outer, outer, outer.args["qualify"].this)
    _refuse_others(outer, "expressions", "from_", "where")
    inner = _source(outer)
    if not isinstance(inner, exp.Subquery) or not isinstance(inner.this, exp.Select):
        raise refused("a query without a ranked subquery or QUALIFY")
    _refuse_others(inner.this, "expressions", "from_")
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
    bounds = _bounds(condition, rank)
    shown = _projection(inner)
    chosen = shown if outer is inner else _chosen(outer, shown, rank)
    is_ranked = rank is not None and (outer is inner or _shows(outer, rank))
    return {
        "from": _table(_source(inner)),
        "function": window.this.name.lower(),
        "partition_by": tuple(_partition(window, shown)),
        "order_by": tuple(RankKey.of(key) for key in _order(window)),
        "limit": bounds.limit,
        "offset": bounds.first - 1,
        "select": chosen,
        "rank": rank if is_ranked else None,
    }


def _table(tree: syntax.Tree) -> str:
    if not isinstance(tree, exp.Table) or not isinstance(tree.this, exp.Identifier):
        raise refused("an input that is not a table")
    for name, value in tree.args.items():
        if value and name not in ("this", "db"):
            raise refused("an alias of the input" if name == "alias" else name.upper())
    return f"{tree.db}.{tree.name}" if tree.db else tree.name


def _ranking(inner: exp.Select, condition: syntax.Tree) -> tuple[exp.Window, str | None]:
    """The one window function, in the select list or in QUALIFY itself, and its name."""
    named = [
        (item.this, item.alias)
        for item in inner.expressions
        if isinstance(item, exp.Alias) and isinstance(item.this, exp.Window)
    ]
    found: list[tuple[exp.Window, str | None]] = [*named]
    found += [(window, None) for window in condition.find_all(exp.Window)]
    if len(found) != 1:
        raise refused("a query with no or several ranking functions")
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
    """The selected columns without the ranking; None for all of them (`*`)."""
    items = [item for item in select.expressions if not isinstance(item.unalias(), exp.Window)]
    if any(isinstance(item, exp.Star) for item in items):
        if len(items) > 1 or items[0].args.get("except_"):
            raise refused("other columns beside *")
        return None
    return dict(_item(item) for item in items)


def _item(item: syntax.Tree) -> tuple[str, Expression]:
    tree = item.unalias()
    syntax.check(tree)
    if not item.alias and not isinstance(tree, exp.Column):
        raise refused(f"{syntax.render(item)} without a name (AS ...)")
    return item.alias or tree.name, Expression.of(tree)


def _chosen(
    outer: exp.Select, shown: Mapping[str, Expression] | None, rank: str | None
) -> dict[str, Expression] | None:
    """The outer query's columns, as expressions over the input."""
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


def _shows(outer: exp.Select, rank: str) -> bool:
    items = outer.expressions
    return any(isinstance(item, exp.Star) or item.unalias().name == rank for item in items)


def _partition(window: exp.Window, shown: Mapping[str, Expression] | None) -> Iterator[Named]:
    for tree in window.args.get("partition_by") or ():
        syntax.check(tree)
        expression = Expression.of(tree)
        names = [name for name, other in (shown or {}).items() if other.sql == expression.sql]
        name = expression.plain_column or next(iter(names), None)
        if name is None:
            raise refused(f"PARTITION BY {expression.sql} without selecting it under a name")
        yield Named(name=name, expression=expression)


def _bounds(condition: syntax.Tree, rank: str | None) -> Bounds:
    """The ranks that a condition keeps."""
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    bounds = [_bound(part.unnest(), rank) for part in parts]
    first = max(1, *(low for low, _ in bounds))
    uppers = [high for _, high in bounds if high is not None]
    if len(uppers) != 1:
        raise refused("a ranking with no or several upper bounds")
    if isinstance(uppers[0], int) and uppers[0] < first:
        raise refused("a range of ranks that is empty")
    return Bounds(first, uppers[0])


def _bound(  # noqa: PLR0911 - one per comparison
    part: syntax.Tree, rank: str | None
) -> tuple[int, int | str | None]:
    text = f"the condition {syntax.render(part)}"
    if not _is_rank(part.this, rank):
        raise refused(text)
    match part:
        case exp.Between():
            return _number(part.args["low"], text), _number(part.args["high"], text)
        case exp.EQ():
            return (_number(part.expression, text),) * 2
        case exp.LTE() if isinstance(part.expression, exp.Column):
            return 1, part.expression.name
        case exp.LTE():
            return 1, _number(part.expression, text)
        case exp.LT():
            return 1, _number(part.expression, text) - 1
        case exp.GTE():
            return _number(part.expression, text), None
        case exp.GT():
            return _number(part.expression, text) + 1, None
    raise refused(text)


def _is_rank(tree: Any, rank: str | None) -> bool:
    if isinstance(tree, exp.Window):
        return rank is None
    return isinstance(tree, exp.Column) and tree.name == rank and not tree.table


def _number(tree: syntax.Tree, text: str) -> int:
    if not isinstance(tree, exp.Literal) or not tree.is_int:
        raise refused(text)
    return int(tree.name)
