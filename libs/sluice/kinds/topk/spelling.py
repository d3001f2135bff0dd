"""Rewriting of a ranked query from other common spellings into the one that is read.

Only spelling changes. A WITH of one query becomes a subquery, an alias of the only table is
dropped, and `10 >= rank` becomes `rank <= 10`. The query's meaning is not checked here.
"""

from collections.abc import Iterator

from sqlglot import exp

from sluice.language.syntax import Tree

MIRRORED: dict[type[Tree], type[Tree]] = {
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
    exp.EQ: exp.EQ,
}


def respelled(query: exp.Select) -> exp.Select:
    """Rewrite the query: subquery in place, no table aliases, literals on the right."""
    _put_in_place(query)
    for select in [*query.find_all(exp.Select)]:
        _drop_alias(select)
    for node in [*_own(query)]:
        mirror = MIRRORED.get(type(node))
        if mirror and isinstance(node.this, exp.Literal):
            node.replace(mirror(this=node.expression, expression=node.this))
    return query


def _put_in_place(query: exp.Select) -> None:
    """Turn `WITH r AS (...) SELECT ... FROM r` into `SELECT ... FROM (...) AS r`."""
    clause, table = query.args.get("with_"), _table(query)
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
    name, table = source.this.alias_or_name.lower(), _table(select)
    for column in [node for node in _own(select) if isinstance(node, exp.Column)]:
        if column.table.lower() == name and not column.db:
            column.replace(column.this if column.is_star else exp.column(column.this))
    if table and table.alias and not table.args["alias"].columns:
        table.set("alias", None)


def _table(select: exp.Select) -> exp.Table | None:
    source = select.args.get("from_")
    return source.this if source and isinstance(source.this, exp.Table) else None


def _own(select: exp.Select) -> Iterator[Tree]:
    """Yield the nodes of a query, without those of its subqueries."""
    yield from select.walk(prune=lambda node: isinstance(node, exp.Subquery))
