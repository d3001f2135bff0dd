"""Grouping: aggregates of the rows of each group, and expressions of them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.expressions.compiling import Column, Scope, column, compile_node
from sluice.interpreter.expressions.nodes import Call, Node, Over, name_of
from sluice.interpreter.expressions.walking import outermost
from sluice.interpreter.relations.aggregates import (
    AGGREGATES,
    OF_ONE,
    SPARKS,
    aggregate_of,
    arguments_of,
)
from sluice.interpreter.relations.relation import Relation
from sluice.interpreter.relations.sorting import grouped, unplaced
from sluice.interpreter.values.arrow import Values
from sluice.interpreter.values.batch import Batch, Value
from sluice.interpreter.values.casts import boolean
from sluice.interpreter.values.columns import Same, settled
from sluice.interpreter.values.keys import group_key, normal

Groups = Sequence[Sequence[int]]


def _is_call(node: Node) -> bool:
    return isinstance(node, Call) and (node.name in AGGREGATES or node.name in SPARKS)


def is_aggregated(node: Node) -> bool:
    """Return whether an expression has an aggregate, other than one over a window."""
    parts = outermost(node, lambda n: isinstance(n, Over) or _is_call(n))
    return any(isinstance(part, Call) for part in parts)


def aggregate(relation: Relation, by: Sequence[Node], nodes: Sequence[Node]) -> Relation:
    """Return a row for each group: its keys, and the expressions of aggregates."""
    scope = Scope(relation.columns)
    keys = [compile_node(node, scope) for node in by]
    unplaced(keys)
    calls = {id(c): c for node in nodes for c in outermost(node, _is_call)}
    folds = {key: _folded(call, scope) for key, call in calls.items() if isinstance(call, Call)}
    shown = [normal(k.type) for k in keys]
    named = [Column(name_of(n), k.type) for n, k in zip(by, keys, strict=True)]
    outer = Scope(named, computed={key: column(key, type_) for key, (type_, _) in folds.items()})
    values = [compile_node(node, outer) for node in nodes]
    columns = [*named, *(Column(name_of(n), v.type) for n, v in zip(nodes, values, strict=True))]

    def compute() -> Batch:
        batch = relation.rows()
        groups = grouped(batch, keys, group_key)
        if not keys:
            groups = groups or {(): ()}
        lists = list(groups.values())
        by_key = list(zip(*groups, strict=True)) if lists else [()] * len(keys)
        whole = Batch(
            len(lists),
            {i: list(map(shown[i], by_key[i])) for i in range(len(keys))},
            {key: partial(run, batch, lists) for key, (_, run) in folds.items()},
        )
        parts = [partial(whole.column, i) for i in range(len(keys))]
        parts += [partial(v.run, whole) for v in values]
        return Batch(len(lists), {}, dict(enumerate(parts)))

    return Relation(tuple(columns), compute)


def _folded(call: Call, scope: Scope) -> tuple[T.DataType, Callable[[Batch, Groups], Values]]:
    arguments = [compile_node(a, scope) for a in arguments_of(call)]
    where = boolean(compile_node(call.where, scope)) if call.where else None
    type_, fold, taken = aggregate_of(call.name, arguments, is_distinct=call.is_distinct)

    counts = call.name == "count_if" and not call.is_distinct
    shows_one = call.name in OF_ONE and not isinstance(type_, T.DoubleType)

    def run(batch: Batch, groups: Groups) -> Values:
        if where is not None:
            groups = _met(where.run(batch), groups)
        if not taken:
            return [fold([()] * len(group)) for group in groups]
        if counts and (one := settled(taken[0].run(batch))):
            return [len(group) if one.value else 0 for group in groups]
        rows = _rows(batch, taken)
        of = _of(rows)
        if not shows_one:
            return [fold(of(group)) for group in groups]
        return [rows[group[0]][0] if len(group) == 1 else fold(of(group)) for group in groups]

    return type_, run


def _met(wanted: Values, groups: Groups) -> Groups:
    """Return the rows of groups that meet a condition."""
    if one := settled(wanted):
        return groups if one.value else [()] * len(groups)
    return [[i for i in group if wanted[i]] for group in groups]


def _rows(batch: Batch, values: list[Value]) -> Sequence[tuple[Any, ...]]:
    """Return each row's values; identical rows are not built one by one."""
    columns = [v.run(batch) for v in values]
    same = [one.value for one in map(settled, columns) if one]
    if len(same) == len(columns):
        return Same(tuple(same), batch.count)
    return list(zip(*columns, strict=True))


def _of(rows: Sequence[tuple[Any, ...]]) -> Callable[[Sequence[int]], Sequence[tuple[Any, ...]]]:
    """Return the function from a group to its rows."""
    if isinstance(rows, Same):
        return lambda group: Same(rows.value, len(group))
    count = len(rows)  # a group of as many is all rows, in their order
    return lambda group: rows if len(group) == count else [rows[i] for i in group]
