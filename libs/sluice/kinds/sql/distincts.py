"""Sums and means of distinct values: groups by the value as well, and then groups of these."""

from collections.abc import Mapping

from sqlglot import exp

from sluice.kinds.sql.chain import Chain
from sluice.kinds.sql.query import Refused
from sluice.kinds.sql.sources import Grouped, Relation, StoredRows
from sluice.kinds.sql.trees import sql
from sluice.language.syntax import Tree

VALUE = "value"
OF_PARTS = {"count": "sum", "min": "min", "max": "max"}  # how results of parts are put together


def are_summed(aggregates: Mapping[str, Tree]) -> bool:
    """True if a sum or mean of distinct values is among the aggregates."""
    return any(_distinct(t) is not None and _name(t) in ("sum", "avg") for t in aggregates.values())


def in_two_steps(
    parts: Chain, rows: StoredRows, keys: Mapping[str, Tree], aggregates: Mapping[str, Tree]
) -> tuple[StoredRows, dict[str, Tree]]:
    """Return groups by keys and value, and the aggregates over these that give the same."""
    values = {sql(v): v for t in aggregates.values() if (v := _distinct(t)) is not None}
    if len(values) > 1:
        raise Refused([*values.values()][1], "DISTINCT sums of two values: write two queries")
    plain = {n: t for n, t in aggregates.items() if _distinct(t) is None}
    for tree in plain.values():
        if _name(tree) not in OF_PARTS:
            what = f"{sql(tree)} beside a DISTINCT sum can't be kept: write two queries"
            raise Refused(tree, what)
    by = {**keys, VALUE: next(iter(values.values()))}
    source = Grouped(rows.source, rows.where, by, plain)
    shown = {n: exp.column(n) for n in (*by, *plain)}
    stored = parts.stored(Relation(source, shown))
    found = {n: _again(n, t, stored) for n, t in aggregates.items()}
    return stored, found


def _again(name: str, tree: Tree, groups: StoredRows) -> Tree:
    is_plain = _distinct(tree) is None
    function = OF_PARTS[_name(tree)] if is_plain else _name(tree)
    column = groups.columns[name if is_plain else VALUE]
    return exp.Anonymous(this=function, expressions=[column.copy()])


def _name(tree: Tree) -> str:
    call = tree.this if isinstance(tree, exp.Filter) else tree
    return str(call.name).lower()


def _distinct(tree: Tree) -> Tree | None:
    """Return the value whose distinct ones an aggregate takes; None if it takes all."""
    first = tree.expressions[0] if tree.expressions else None
    if not isinstance(first, exp.Distinct) or _name(tree) not in ("sum", "avg", "count"):
        return None
    value: Tree = first.expressions[0]
    return value
