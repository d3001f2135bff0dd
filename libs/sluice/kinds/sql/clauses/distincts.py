"""Sums and means of distinct values: each value is a separate stream of its distinct rows."""

from collections.abc import Mapping

from sqlglot import exp

from sluice.kinds.sql.reading.trees import sql
from sluice.kinds.sql.relations.chain import Chain
from sluice.kinds.sql.relations.sources import DistinctRows, GroupStream, QueryRows, StoredRows
from sluice.language.syntax import Tree

VALUE = "value"


def apart(
    parts: Chain, rows: StoredRows, keys: Mapping[str, Tree], aggregates: Mapping[str, Tree]
) -> tuple[dict[str, Tree], tuple[GroupStream, ...]]:
    """Return the aggregates of all rows, and a stream for each value that is summed distinct."""
    found = {name: _distinct(tree) for name, tree in aggregates.items()}
    values = {sql(value): value for value in found.values() if value is not None}
    shown = {n: tree for n, tree in keys.items() if tree.find(exp.Column)}  # others are constants
    streams = []
    for text, value in values.items():
        seen = DistinctRows(rows.source, {**shown, VALUE: value}, rows.where)
        stored = parts.stored(QueryRows(seen, {n: exp.column(n) for n in (*shown, VALUE)}))
        mine = {
            name: exp.Anonymous(this=_call(tree).name, expressions=[stored.columns[VALUE].copy()])
            for name, tree in aggregates.items()
            if (its := found[name]) is not None and sql(its) == text
        }
        by = {**keys, **{key: stored.columns[key] for key in shown}}
        streams.append(GroupStream(stored.source, stored.where, by, mine))
    return {n: tree for n, tree in aggregates.items() if found[n] is None}, tuple(streams)


def _call(tree: Tree) -> Tree:
    call: Tree = tree.this if isinstance(tree, exp.Filter) else tree
    return call


def _distinct(tree: Tree) -> Tree | None:
    """Return the value of a distinct sum or mean; None for other aggregates."""
    call = _call(tree)
    first = call.expressions[0] if call.expressions else None
    if not isinstance(first, exp.Distinct) or call.name.lower() not in ("sum", "avg", "mean"):
        return None
    value: Tree = first.expressions[0].copy()
    if isinstance(tree, exp.Filter):
        return exp.Case(ifs=[exp.If(this=tree.expression.this.copy(), true=value)])
    return value
