"""Tables of subqueries that hide tables of the queries around them, renamed.

In `SELECT cid FROM custs WHERE cid IN (SELECT boss FROM custs)` the inner table becomes `custs_1`.
So an alias means one table when conditions of a subquery and of its outer query are put together.
"""

from sqlglot import exp

from sluice.kinds.sql.reading.trees import columns_in, free_name, own_sources, own_tables
from sluice.language.syntax import Tree


def with_own_aliases(tree: exp.Query) -> None:
    """Rename tables of subqueries that hide outer ones; each column of `tree` has its table."""
    taken = {t.alias_or_name for t in tree.find_all(exp.Table, exp.Subquery, exp.Lateral)}
    for select in [*tree.find_all(exp.Select)]:  # outer ones first
        for alias in sorted(own_tables(select) & _around(select)):
            name = free_name(alias, taken)
            taken.add(name)
            _rename(select, alias, name)


def _around(select: Tree) -> set[str]:
    """Return the tables of outer queries that a query may read: none of those beside it in FROM."""
    node, is_lateral, is_source = select, False, False
    while node.parent is not None:
        is_first = isinstance(node.parent, exp.From | exp.CTE)
        is_joined = isinstance(node.parent, exp.Join) and node.arg_key == "this"
        node = node.parent
        is_lateral = is_lateral or isinstance(node, exp.Lateral)
        is_source = is_source or ((is_first or is_joined) and not is_lateral)
        if isinstance(node, exp.Select):
            return _around(node) if is_source else _around(node) | own_tables(node)
    return set()


def _rename(select: exp.Select, alias: str, name: str) -> None:
    columns = [c for c in columns_in(select) if c.table == alias and _owner(c, alias) is select]
    for source in own_sources(select):
        if source.alias_or_name == alias:
            given = source.args.get("alias") or exp.TableAlias()
            given.set("this", exp.to_identifier(name))
            source.set("alias", given)
    for column in columns:
        column.set("table", exp.to_identifier(name))


def _owner(column: exp.Column, alias: str) -> Tree | None:
    """Return the innermost query around a column that has a table of that alias."""
    found = column.parent_select
    while isinstance(found, exp.Query) and not _has(found, alias):
        found = found.parent_select
    return found


def _has(query: Tree, alias: str) -> bool:
    return isinstance(query, exp.Select) and alias in own_tables(query)
