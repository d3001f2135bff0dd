"""Small steps on trees of expressions: columns, tables, conditions, aggregates; and refusals."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce

from sqlglot import exp

from sluice.language import syntax
from sluice.language.names import NAME
from sluice.language.syntax import AGGREGATES, Tree

_ATOMS = (exp.Column, exp.Literal, exp.Anonymous, exp.Cast, exp.Paren, exp.Boolean, exp.Null)

CALLED_WITH = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


class Refused(ValueError):
    """A part of a query that can't be maintained incrementally; `node` is its place."""

    def __init__(self, node: Tree, why: str) -> None:
        line = line_of(node)
        super().__init__(f"line {line}: {why}" if line else why)


def line_of(node: Tree) -> int:
    """Return the line of a part of the query, 0 if it isn't known."""
    lines = (part.meta.get("line") for part in node.walk())
    return next((int(line) for line in lines if line), 0)


def sql(tree: Tree) -> str:
    """Return the tree as Spark SQL."""
    return syntax.render(tree)


def columns_in(tree: Tree) -> Iterator[exp.Column]:
    """Yield the columns that a tree names, fields of structs by their column."""
    yield from tree.find_all(exp.Column)


def tables_of(tree: Tree) -> set[str]:
    """Return the aliases of tables that an expression names."""
    return {column.table for column in columns_in(tree)}


def is_column(tree: Tree) -> bool:
    """True if the tree is a column and nothing else."""
    return isinstance(tree, exp.Column)


def key_of(column: exp.Column) -> str:
    """Return `table.column`, or only the column's name."""
    return f"{column.table}.{column.name}" if column.table else column.name


def substitute(tree: Tree, columns: Mapping[str, Tree]) -> Tree:
    """Return the tree with columns replaced, by `name` or `table.name`; others stay."""

    def step(node: Tree) -> Tree:
        if isinstance(node, exp.Column) and key_of(node) in columns:
            found = columns[key_of(node)].copy()
            if node.parent is not None and not isinstance(found, _ATOMS):
                return exp.Paren(this=found)
            return found
        return node

    return tree.transform(step)


def own_sources(select: exp.Select) -> list[Tree]:
    """Return the tables and queries that a query reads in FROM, JOIN and LATERAL."""
    first = [select.args["from_"].this] if select.args.get("from_") else []
    joins = [join.this for join in select.args.get("joins") or ()]
    return [*first, *joins, *(select.args.get("laterals") or ())]


def own_tables(select: exp.Select) -> set[str]:
    """Return the aliases of the query's own tables."""
    return {source.alias_or_name for source in own_sources(select)}


def shared_part(table: exp.Table) -> exp.CTE | None:
    """Return the part of WITH that a table's name stands for at its place; None for a stored one.

    A name is known in the query behind its WITH, and in the parts of that WITH behind it.
    """
    node: Tree = table
    cte: exp.CTE
    while not table.db and node.parent is not None:
        part, node = node, node.parent
        with_ = node if isinstance(node, exp.With) else node.args.get("with_")
        if with_ is None or part is with_:
            continue
        for cte in with_.expressions:
            if cte is part:
                break
            if cte.alias == table.name:
                return cte
    return None


def of_side(tree: Tree, side: str) -> Tree:
    """Return the tree with its columns as those of one side of a join."""
    copied = tree.copy()
    for column in copied.find_all(exp.Column):
        column.set("table", exp.to_identifier(side))
    return copied


def both(conditions: Iterable[Tree]) -> Tree:
    """Return the conjunction of conditions; there must be one."""
    each = [exp.Paren(this=c.copy()) if isinstance(c, exp.Or) else c.copy() for c in conditions]
    return reduce(lambda a, b: exp.And(this=a, expression=b), each)


def call_of(name: str, *arguments: Tree) -> exp.Anonymous:
    """Return the call of a function."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def is_null(tree: Tree) -> exp.Is:
    """Return the condition that an expression is null."""
    return exp.Is(this=tree.copy(), expression=exp.Null())


def conjuncts(tree: Tree | None) -> list[Tree]:
    """Return the conditions that all must hold, none for no condition."""
    if tree is None:
        return []
    inner = tree.unnest()
    if isinstance(inner, exp.And):
        return [*conjuncts(inner.this), *conjuncts(inner.expression)]
    return _factor(inner) if isinstance(inner, exp.Or) else [inner]


def _factor(tree: exp.Or) -> list[Tree]:
    """Return a disjunction as its parts' common conditions and the disjunction of the rest."""
    parts = [{sql(c): c for c in conjuncts(part)} for part in _disjuncts(tree)]
    common = [text for text in parts[0] if all(text in part for part in parts)]
    if not common:
        return [tree]
    rests = [[c for text, c in part.items() if text not in common] for part in parts]
    found = [parts[0][text] for text in common]
    if not all(rests):
        return found
    each: list[Tree] = [exp.Paren(this=both(rest)) for rest in rests]
    return [*found, reduce(lambda a, b: exp.Or(this=a, expression=b), each)]


def _disjuncts(tree: Tree) -> list[Tree]:
    inner = tree.unnest()
    if isinstance(inner, exp.Or):
        return [*_disjuncts(inner.this), *_disjuncts(inner.expression)]
    return [inner]


def is_true(tree: Tree) -> bool:
    """True for the condition TRUE."""
    return isinstance(tree, exp.Boolean) and bool(tree.this)


def has_query(tree: Tree) -> bool:
    """True if a query is part of the expression."""
    return tree.find(exp.Select, exp.SetOperation) is not None


def free_name(wanted: str, taken: Collection[str]) -> str:
    """Return a name for a column that is not taken, like the wanted one."""
    base = wanted if NAME.fullmatch(wanted) and not wanted.startswith("_") else "c"
    number = 0
    while (name := f"{base}_{number}" if number else base) in taken:
        number += 1
    return name


def has_aggregates(trees: Iterable[Tree]) -> bool:
    """True if any of the expressions has an aggregate outside windows and subqueries."""
    return any(find_aggregates(trees))


def find_aggregates(trees: Iterable[Tree]) -> Iterator[Tree]:
    """Yield the aggregates of expressions, outside of windows and subqueries."""
    return (node for t in trees for node in t.walk(prune=is_query) if is_aggregate(node))


def is_query(node: Tree) -> bool:
    """True for a query inside an expression."""
    return isinstance(node, exp.Query)


def is_aggregate(node: Tree) -> bool:
    """True for the call of an aggregate, with its FILTER."""
    if isinstance(node, CALLED_WITH):
        return not isinstance(node.parent, exp.Window) and is_aggregate(node.this)
    parent = node.parent if node.arg_key == "this" else None  # past FILTER or IGNORE NULLS
    caller = parent.parent if isinstance(parent, CALLED_WITH) else parent
    if isinstance(caller, exp.Window):
        return False
    return (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES) or isinstance(
        node, exp.Any
    )


def unfiltered(tree: Tree) -> Tree:
    """Return the call of an aggregate without its FILTER."""
    call: Tree = tree.this if isinstance(tree, exp.Filter) else tree
    return call


def is_count(tree: Tree) -> bool:
    """True for an aggregate that is 0 for no rows."""
    call = unfiltered(tree)
    return isinstance(call, exp.Anonymous) and call.name.lower().startswith(
        ("count", "approx_count")
    )
