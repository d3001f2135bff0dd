"""Grouping: aggregates of the rows of each group, and expressions of them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.expressions.compiling import Bindings, RelationColumn, column, compile_node
from sluice.interpreter.expressions.expression_tree import (
    ExpressionNode,
    FunctionCall,
    WindowFunction,
    name_of,
)
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
from sluice.interpreter.values.arrow_columns import Same, settled
from sluice.interpreter.values.arrow_conversion import Values
from sluice.interpreter.values.casts import boolean
from sluice.interpreter.values.column_batch import ColumnBatch, Value
from sluice.interpreter.values.value_order import group_key, normal

GroupRows = Sequence[Sequence[int]]


def _is_call(node: ExpressionNode) -> bool:
    return isinstance(node, FunctionCall) and (node.name in AGGREGATES or node.name in SPARKS)


def is_aggregated(node: ExpressionNode) -> bool:
    """Return whether an expression has an aggregate, other than one over a window."""
    parts = outermost(node, lambda n: isinstance(n, WindowFunction) or _is_call(n))
    return any(isinstance(part, FunctionCall) for part in parts)


def aggregate(
    relation: Relation, by: Sequence[ExpressionNode], nodes: Sequence[ExpressionNode]
) -> Relation:
    """Return a row for each group: its keys, and the expressions of aggregates."""
    bindings = Bindings(relation.columns)
    keys = [compile_node(node, bindings) for node in by]
    unplaced(keys)
    calls = {id(c): c for node in nodes for c in outermost(node, _is_call)}
    folds = {
        key: _folded(call, bindings)
        for key, call in calls.items()
        if isinstance(call, FunctionCall)
    }
    shown = [normal(k.type) for k in keys]
    named = [RelationColumn(name_of(n), k.type) for n, k in zip(by, keys, strict=True)]
    outer = Bindings(named, computed={key: column(key, type_) for key, (type_, _) in folds.items()})
    values = [compile_node(node, outer) for node in nodes]
    columns = [
        *named,
        *(RelationColumn(name_of(n), v.type) for n, v in zip(nodes, values, strict=True)),
    ]

    def compute() -> ColumnBatch:
        batch = relation.rows()
        groups = grouped(batch, keys, group_key)
        if not keys:
            groups = groups or {(): ()}
        lists = list(groups.values())
        by_key = list(zip(*groups, strict=True)) if lists else [()] * len(keys)
        whole = ColumnBatch(
            len(lists),
            {i: list(map(shown[i], by_key[i])) for i in range(len(keys))},
            {key: partial(run, batch, lists) for key, (_, run) in folds.items()},
        )
        parts = [partial(whole.column, i) for i in range(len(keys))]
        parts += [partial(v.run, whole) for v in values]
        return ColumnBatch(len(lists), {}, dict(enumerate(parts)))

    return Relation(tuple(columns), compute)


def _folded(
    call: FunctionCall, bindings: Bindings
) -> tuple[T.DataType, Callable[[ColumnBatch, GroupRows], Values]]:
    arguments = [compile_node(a, bindings) for a in arguments_of(call)]
    where = boolean(compile_node(call.where, bindings)) if call.where else None
    type_, fold, taken = aggregate_of(call.name, arguments, is_distinct=call.is_distinct)

    counts = call.name == "count_if" and not call.is_distinct
    shows_one = call.name in OF_ONE and not isinstance(type_, T.DoubleType)

    def run(batch: ColumnBatch, groups: GroupRows) -> Values:
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


def _met(wanted: Values, groups: GroupRows) -> GroupRows:
    """Return the rows of groups that meet a condition."""
    if one := settled(wanted):
        return groups if one.value else [()] * len(groups)
    return [[i for i in group if wanted[i]] for group in groups]


def _rows(batch: ColumnBatch, values: list[Value]) -> Sequence[tuple[Any, ...]]:
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
