"""Grouping: aggregates of the rows of each group, and expressions of them."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial

import numpy as np
from pyspark.sql import types as T

from sluice.interpreter.expressions import expression_tree as E
from sluice.interpreter.expressions.compiling import (
    Bindings,
    RelationColumn,
    compile_node,
    outermost,
)
from sluice.interpreter.relations.aggregates import AGGREGATES, Frames, aggregate_of, arguments_of
from sluice.interpreter.relations.relation import Relation, number_rows, refuse_place
from sluice.interpreter.values.arrow_conversion import Values
from sluice.interpreter.values.casts import boolean
from sluice.interpreter.values.column_batch import (
    ColumnBatch,
    Value,
    column,
    map_values,
    take_rows,
    true_mask,
)
from sluice.interpreter.values.value_order import group_key, has_floats, has_maps, normal

# Known, so that an unsupported one is not taken for a scalar function.
SPARKS = frozenset(
    {
        *("hll_sketch_agg", "hll_union_agg", "percentile", "median"),
        *("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"),
        *("kll_sketch_agg_bigint", "kll_sketch_agg_double", "percentile_approx"),
    }
)


def _is_call(node: E.ExpressionNode) -> bool:
    return isinstance(node, E.FunctionCall) and (node.name in AGGREGATES or node.name in SPARKS)


def is_aggregated(node: E.ExpressionNode) -> bool:
    """Return whether an expression has an aggregate, other than one over a window."""
    parts = outermost(node, lambda n: isinstance(n, E.WindowFunction) or _is_call(n))
    return any(isinstance(part, E.FunctionCall) for part in parts)


def aggregate(
    relation: Relation, by: Sequence[E.ExpressionNode], nodes: Sequence[E.ExpressionNode]
) -> Relation:
    """Return a row for each group: its keys, and the expressions of aggregates."""
    bindings = Bindings(relation.columns)
    keys = [compile_node(node, bindings) for node in by]
    refuse_place(keys)
    calls = {id(c): c for node in nodes for c in outermost(node, _is_call)}
    folds = {
        key: _compile_fold(call, bindings)
        for key, call in calls.items()
        if isinstance(call, E.FunctionCall)
    }
    named = [RelationColumn(E.name_of(n), k.type) for n, k in zip(by, keys, strict=True)]
    outer = Bindings(named, computed={key: column(key, type_) for key, (type_, _) in folds.items()})
    values = [compile_node(node, outer) for node in nodes]
    columns = [
        *named,
        *(RelationColumn(E.name_of(n), v.type) for n, v in zip(nodes, values, strict=True)),
    ]

    def compute() -> ColumnBatch:
        batch = relation.rows()
        groups = _groups(batch, keys)
        ones = groups.rows[groups.firsts] if keys else groups.firsts
        later: dict[Hashable, Callable[[], Values]] = {
            i: partial(_show_key, batch, key, ones) for i, key in enumerate(keys)
        }
        later |= {key: partial(run, batch, groups) for key, (_, run) in folds.items()}
        whole = ColumnBatch(len(ones), {}, later)
        parts = [partial(whole.column, i) for i in range(len(keys))]
        parts += [partial(v.run, whole) for v in values]
        return ColumnBatch(len(ones), {}, dict(enumerate(parts)))

    return Relation(tuple(columns), compute)


def _groups(batch: ColumnBatch, keys: Sequence[Value]) -> Frames:
    """Return the rows of each group, in the order of its first; without keys, all are one."""
    if not keys:
        return Frames(np.arange(batch.count), np.array([0]), np.array([batch.count]))
    numbers = number_rows(batch, keys, group_key)
    counts = np.bincount(numbers)
    ends = np.cumsum(counts)
    return Frames(np.argsort(numbers, kind="stable"), ends - counts, ends)


def _show_key(batch: ColumnBatch, key: Value, rows: np.ndarray) -> Values:
    found = take_rows(key.run(batch), rows)
    show = group_key(key.type) if has_maps(key.type) else None
    show = normal(key.type) if has_floats(key.type) else show  # no key has both
    return map_values(show, found) if show else found


def _compile_fold(
    call: E.FunctionCall, bindings: Bindings
) -> tuple[T.DataType, Callable[[ColumnBatch, Frames], Values]]:
    arguments = [compile_node(a, bindings) for a in arguments_of(call)]
    where = boolean(compile_node(call.where, bindings)) if call.where else None
    type_, fold, taken = aggregate_of(call.name, arguments, is_distinct=call.is_distinct)

    def run(batch: ColumnBatch, groups: Frames) -> Values:
        if where is not None:
            groups = groups.keep(true_mask(where.run(batch)))
        return fold([argument.run(batch) for argument in taken], groups)

    return type_, run
