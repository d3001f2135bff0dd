"""A top-k as it is written: in SQL, read into the fields of its declaration, and its sort keys.

Two forms of SQL are accepted: QUALIFY, and a numbered subquery (or WITH) limited by an outer WHERE.
Anything else is refused with its name, so that nothing is silently ignored. A sort key is an
expression of the row, or a user's Python function of expressions: `shop.scores:worth(price, units)
desc` sorts by the result of `worth` for a row. The function comes from a module that the project
lists, and must be deterministic.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from sqlglot import exp

from sluice.language import syntax
from sluice.language.expression import Expression, Named, SortKey
from sluice.language.syntax import Tree

RANKINGS = ("row_number", "rank", "dense_rank")
WORDS = {
    "with_": "WITH",
    "from_": "FROM",
    "joins": "JOIN",
    "group": "GROUP BY",
    "order": "ORDER BY",
    "windows": "WINDOW",
}


OWN = re.compile(r"\s*([A-Za-z_][\w.]*:[A-Za-z_]\w*)\s*(\(.*)", re.DOTALL)
FORM = (
    "write SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY p ORDER BY s DESC) AS rank "
    "FROM input) WHERE rank <= 10"
)
MIRRORED: dict[type[Tree], type[Tree]] = {
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
    exp.EQ: exp.EQ,
}


def read_topk(text: str) -> dict[str, Any]:
    """Return the fields that the SQL declares; ValueError names an unsupported part."""
    outer = syntax.parse_as(text.rstrip().removesuffix(";"), None)
    if not isinstance(outer, exp.Select):
        raise refusal(type(outer).__name__.upper())
    outer = respell(outer)
    if outer.args.get("qualify"):
        _refuse_others(outer, "expressions", "from_", "where", "qualify")
        return _fields(outer, outer, outer.args["qualify"].this)
    _refuse_others(outer, "expressions", "from_", "where")
    inner = _source(outer)
    if not isinstance(inner, exp.Subquery) or not isinstance(inner.this, exp.Select):
        raise refusal("a query without a ranked subquery or QUALIFY")
    for name, value in inner.args.items():
        if value and name not in ("this", "alias"):
            raise refusal(name.upper())
    _refuse_others(inner.this, "expressions", "from_", "where")
    if not outer.args.get("where"):
        raise refusal("a query without WHERE rank <= k")
    return _fields(inner.this, outer, outer.args["where"].this)


def _refuse_others(select: exp.Select, *allowed: str) -> None:
    for name, value in select.args.items():
        if value and name not in allowed:
            raise refusal(WORDS.get(name, name.upper()))


def _source(select: exp.Select) -> syntax.Tree:
    source = select.args.get("from_")
    if source is None:
        raise refusal("a query without FROM")
    tree: syntax.Tree = source.this
    if tree.args.get("joins"):
        raise refusal("JOIN")
    return tree


def _fields(inner: exp.Select, outer: exp.Select, condition: syntax.Tree) -> dict[str, Any]:
    window, rank = _ranking(inner, condition)
    bounds = bounds_of(condition, rank)
    shown = _projection(inner)
    chosen = shown if outer is inner else _select_outer(outer, shown, rank)
    return {
        "from": _table(_source(inner)),
        "where": _condition(inner),
        "function": window.this.name.lower(),
        "partition_by": tuple(_partition(window, chosen, shown)),
        "order_by": tuple(RankKey.of(key) for key in _order(window)),
        "limit": bounds.limit,
        "offset": bounds.first - 1,
        "select": chosen,
        "rank": rank if outer is inner or rank is None else _name_of_rank(outer, rank),
    }


def _condition(inner: exp.Select) -> Expression | None:
    where = inner.args.get("where")
    if where is None:
        return None
    syntax.check(where.this)
    return Expression.of(where.this)


def _table(tree: syntax.Tree) -> str:
    if not isinstance(tree, exp.Table) or not isinstance(tree.this, exp.Identifier):
        raise refusal("an input that is not a table")
    for name, value in tree.args.items():
        if value and name not in ("this", "db"):
            raise refusal("an alias of the input" if name == "alias" else name.upper())
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
        raise refusal("a query without exactly one ranking function")
    window, rank = found[0]
    if window.this.name.lower() not in RANKINGS or window.this.expressions:
        raise refusal(f"{syntax.render(window.this)} in place of {', '.join(RANKINGS)}")
    for name, value in window.args.items():
        if value and name not in ("this", "partition_by", "order", "over"):
            raise refusal("a window's frame" if name == "spec" else f"a window's {name}")
    return window, rank


def _order(window: exp.Window) -> list[syntax.Tree]:
    order = window.args.get("order")
    if order is None:
        raise refusal("a ranking without ORDER BY")
    keys: list[syntax.Tree] = order.expressions
    return keys


def _projection(select: exp.Select) -> dict[str, Expression] | None:
    """Return the selected columns without the ranking; None for all of them (`*`)."""
    items = [item for item in select.expressions if not isinstance(item.unalias(), exp.Window)]
    if any(isinstance(item, exp.Star) for item in items):
        if len(items) > 1:
            raise refusal("other columns beside *")
        _refuse_in_star(items[0])
        return None
    return dict(_item(item) for item in items)


def _refuse_in_star(star: syntax.Tree) -> None:
    found = [name.removesuffix("_").upper() for name, value in star.args.items() if value]
    if found:
        raise refusal(f"* {found[0]}")


def _item(item: syntax.Tree) -> tuple[str, Expression]:
    tree = item.unalias()
    syntax.check(tree)
    if not item.alias and not isinstance(tree, exp.Column):
        raise refusal(f"{syntax.render(item)} without a name (AS ...)")
    return item.alias or tree.name, Expression.of(tree)


def _select_outer(
    outer: exp.Select, shown: Mapping[str, Expression] | None, rank: str | None
) -> dict[str, Expression] | None:
    """Return the outer query's columns as expressions over the input."""
    chosen = _projection(outer)
    if chosen is None:
        return None if shown is None else dict(shown)
    chosen = {name: tree for name, tree in chosen.items() if tree.plain_column != rank}
    if shown is None:
        return chosen
    return {name: _find_inner(tree, shown) for name, tree in chosen.items()}


def _find_inner(expression: Expression, shown: Mapping[str, Expression]) -> Expression:
    column = expression.plain_column
    if column is None or column not in shown:
        raise refusal(f"{expression.text!r} over a subquery that does not select just that")
    return shown[column]


def _name_of_rank(outer: exp.Select, rank: str) -> str | None:
    """Return the name under which an outer query selects the rank."""
    items = outer.expressions
    if any(isinstance(item, exp.Star) for item in items):
        return rank
    found = [item for item in items if is_rank(item.unalias(), rank)]
    if len(found) > 1:
        raise refusal("the rank under several names")
    return found[0].alias_or_name.lower() if found else None


def _partition(window: exp.Window, *selected: Mapping[str, Expression] | None) -> Iterator[Named]:
    """Yield the partition's expressions, with their names in SELECT, if any."""
    for tree in window.args.get("partition_by") or ():
        syntax.check(tree)
        expression = Expression.of(tree)
        shown = [name for s in selected for name, e in (s or {}).items() if e.sql == expression.sql]
        name = next(iter(shown), expression.plain_column)
        if name is None:
            raise refusal(f"PARTITION BY {expression.sql} without selecting it under a name")
        yield Named(name=name, expression=expression)


class RankKey(SortKey):
    """A sort key; `function` is `module:name`, or '' where `expression` itself is sorted by.

    For a function, `expression` is the struct of its `arguments`: what it reads.
    """

    function: str = ""
    arguments: tuple[Expression, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        found = OWN.fullmatch(text)
        if not found:
            return cls.of(syntax.parse_as(text, exp.Ordered))
        ordered = syntax.parse_as(f"struct{found[2]}", exp.Ordered)
        return cls._of_function(found[1], ordered)

    @classmethod
    def spelled(cls, meant: Any) -> str:
        if "function" not in meant:
            return super().spelled(meant)
        call = f"{meant['function']}({', '.join(meant['arguments'])})"
        return super().spelled({**meant, "expression": call})

    @classmethod
    def _of_function(cls, function: str, ordered: syntax.Tree) -> Self:
        call = ordered.this
        if not isinstance(call, exp.Anonymous) or not call.expressions:
            raise ValueError(
                f"{function} takes expressions of the row, and only asc or desc, nulls first or "
                "nulls last may follow it"
            )
        arguments = tuple(Expression.parse(syntax.render(tree)) for tree in call.expressions)
        read = Expression.of(call, f"{function}({', '.join(map(str, arguments))})")
        plain = cls.of(ordered)
        return plain.model_copy(
            update={"expression": read, "function": function, "arguments": arguments}
        )


@dataclass(frozen=True)
class RankRange:
    """Ranks to keep: first to last, or up to a column of the row."""

    first: int
    last: int | str

    @property
    def limit(self) -> int | str:
        if isinstance(self.last, str) and self.first > 1:
            raise refusal("a first rank together with a limit from a column")
        return self.last if isinstance(self.last, str) else self.last - self.first + 1


def refusal(part: str) -> ValueError:
    """Return the error for a part of SQL that no top-k supports."""
    return ValueError(f"{part} is not supported in a top-k's sql; {FORM}")


def bounds_of(condition: syntax.Tree, rank: str | None) -> RankRange:
    """Return the ranks that a condition keeps."""
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    bounds = [_bound(part.unnest(), rank) for part in parts]
    first = max(1, *(low for low, _ in bounds))
    uppers = [high for _, high in bounds if high is not None]
    if len(uppers) != 1:
        raise refusal("a ranking without exactly one upper bound")
    if isinstance(uppers[0], int) and uppers[0] < first:
        raise refusal("a range of ranks that is empty")
    return RankRange(first, uppers[0])


def _bound(  # noqa: PLR0911 - one per comparison
    part: syntax.Tree, rank: str | None
) -> tuple[int, int | str | None]:
    text = f"the condition {syntax.render(part)}"
    if not is_rank(part.this, rank):
        raise refusal(text)
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
    raise refusal(text)


def is_rank(tree: Any, rank: str | None) -> bool:
    """Return whether the tree is the rank: its column, or the ranking function itself."""
    if isinstance(tree, exp.Window):
        return True
    return isinstance(tree, exp.Column) and tree.name == rank and not tree.table


def _number(tree: syntax.Tree, text: str) -> int:
    if not isinstance(tree, exp.Literal) or not tree.is_int:
        raise refusal(text)
    return int(tree.name)


def respell(query: exp.Select) -> exp.Select:
    """Rewrite the query: subquery in place, no table aliases, literals on the right."""
    _put_in_place(query)
    for select in [*query.find_all(exp.Select)]:
        _drop_alias(select)
    for node in [*_own_nodes(query)]:
        mirror = MIRRORED.get(type(node))
        if mirror and isinstance(node.this, exp.Literal):
            node.replace(mirror(this=node.expression, expression=node.this))
    return query


def _put_in_place(query: exp.Select) -> None:
    """Turn `WITH r AS (...) SELECT ... FROM r` into `SELECT ... FROM (...) AS r`."""
    clause, table = query.args.get("with_"), _only_table(query)
    if not clause or clause.args.get("recursive") or len(clause.expressions) != 1 or not table:
        return
    (named,) = clause.expressions
    is_plain = isinstance(named.this, exp.Select) and not named.args["alias"].columns
    if is_plain and table.name == named.alias and not query.args.get("qualify"):
        table.replace(exp.Subquery(this=named.this, alias=exp.to_identifier(table.alias_or_name)))
        query.set("with_", None)


def _drop_alias(select: exp.Select) -> None:
    """Turn `SELECT s.a FROM sales AS s` into `SELECT a FROM sales`."""
    source = select.args.get("from_")
    if source is None or select.args.get("joins"):
        return
    name, table = source.this.alias_or_name.lower(), _only_table(select)
    for column in [node for node in _own_nodes(select) if isinstance(node, exp.Column)]:
        if column.table.lower() == name and not column.db:
            column.replace(column.this if column.is_star else exp.column(column.this))
    if table and table.alias and not table.args["alias"].columns:
        table.set("alias", None)


def _only_table(select: exp.Select) -> exp.Table | None:
    source = select.args.get("from_")
    return source.this if source and isinstance(source.this, exp.Table) else None


def _own_nodes(select: exp.Select) -> Iterator[Tree]:
    """Yield the nodes of a query, without those of its subqueries."""
    yield from select.walk(prune=lambda node: isinstance(node, exp.Subquery))
