"""New columns: of each row, with window functions and arrays spread into rows, and of each group.

A group's columns are aggregates of its rows, and expressions of them.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter import expressions as E
from sluice.interpreter.expressions.compiling import (
    Bindings,
    RelationColumn,
    compile_node,
    find,
    outermost,
)
from sluice.interpreter.relations import Relation, number_rows, place_of, refuse_place
from sluice.interpreter.relations.aggregates import AGGREGATES, Frames, aggregate_of, arguments_of
from sluice.interpreter.relations.window_functions import compile_over
from sluice.interpreter.values import INT, Values
from sluice.interpreter.values.casts import boolean
from sluice.interpreter.values.column_batch import (
    ArrowColumn,
    ColumnBatch,
    Value,
    column,
    column_of,
    map_values,
    take_rows,
    true_mask,
)
from sluice.interpreter.values.numbering import group_key, has_floats, has_maps, normal

GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer")


def project(relation: Relation, nodes: Sequence[E.ExpressionNode]) -> Relation:
    """Return the expressions' columns of each row."""
    nodes = [part for node in nodes for part in _expand(node, relation.columns)]
    if any(_generator(node) for node in nodes):
        return _explode(relation, nodes)
    windows = {
        id(w): w
        for node in nodes
        for w in outermost(node, lambda n: isinstance(n, E.WindowFunction))
    }
    plain = Bindings(relation.columns)
    over = {
        key: compile_over(w, plain) for key, w in windows.items() if isinstance(w, E.WindowFunction)
    }
    bindings = replace(plain, computed={key: column(key, v.type) for key, v in over.items()})
    values = [compile_node(node, bindings) for node in nodes]
    columns = [_column(n, v, relation.columns) for n, v in zip(nodes, values, strict=True)]

    def compute() -> ColumnBatch:
        batch = relation.rows()
        if over:
            batch = batch.beside({k: partial(v.run, batch) for k, v in over.items()})
        return ColumnBatch(
            batch.count, {}, {i: partial(v.run, batch) for i, v in enumerate(values)}
        )

    places = [place_of(node, relation.columns) for node in nodes]
    narrow = None if over else relation.through(lambda less: project(less, nodes), places)
    return Relation(tuple(columns), compute, narrow)


def _column(
    node: E.ExpressionNode, value: Value, columns: Sequence[RelationColumn]
) -> RelationColumn:
    """Return a projected column; a plain one keeps its relation's alias."""
    if isinstance(node, E.ColumnNumber):
        return columns[node.number]
    if isinstance(node, E.ColumnName):
        at, rest = find(node.parts, columns)
        if not rest:
            return replace(columns[at], name=E.name_of(node))
    return RelationColumn(E.name_of(node), value.type)


def _expand(node: E.ExpressionNode, columns: Sequence[RelationColumn]) -> list[E.ExpressionNode]:
    if not isinstance(node, E.Star):
        return [node]
    if node.of is None:
        return [E.ColumnNumber(i) for i, c in enumerate(columns)]
    of = node.of.strip("`").lower()
    aliased = [E.ColumnNumber(i) for i, c in enumerate(columns) if (c.alias or "").lower() == of]
    if aliased:
        return list(aliased)
    at, rest = find([node.of.strip("`")], columns)
    type_ = columns[at].type
    if rest or not isinstance(type_, T.StructType):
        raise UnsupportedLocally(f"{node.of}.*")
    return [E.ColumnName((columns[at].name, name)) for name in type_.names]


def _generator(node: E.ExpressionNode) -> E.FunctionCall | None:
    inner = node.child if isinstance(node, E.Alias) else node
    return inner if isinstance(inner, E.FunctionCall) and inner.name in GENERATORS else None


def _explode(relation: Relation, nodes: Sequence[E.ExpressionNode]) -> Relation:
    """Return a row for each element of an array, beside the other columns."""
    found = [(i, call) for i, node in enumerate(nodes) if (call := _generator(node))]
    if len(found) != 1 or isinstance(nodes[found[0][0]], E.WindowFunction):
        raise UnsupportedLocally("explode of several arrays, or within a window function")
    at, call = found[0]
    items = compile_node(call.arguments[0], Bindings(relation.columns))
    if not isinstance(items.type, T.ArrayType):
        raise UnsupportedLocally("explode of a value that is not an array")
    is_outer, with_place = call.name.endswith("_outer"), call.name.startswith("pos")
    node = nodes[at]
    names = (
        list(node.names)
        if isinstance(node, E.Alias)
        else (["pos", "col"] if with_place else ["col"])
    )
    made = [RelationColumn(names[-1], items.type.elementType)]
    if with_place:
        made.insert(0, RelationColumn(names[0], INT))
    before, after = project(relation, nodes[:at]), project(relation, nodes[at + 1 :])

    def compute() -> ColumnBatch:
        lists = column_of(items.run(relation.rows()), items.type)
        lengths = np.asarray(pc.list_value_length(lists).fill_null(0), np.int64)
        counts = np.maximum(lengths, 1) if is_outer else lengths
        rows = np.repeat(np.arange(len(lengths)), counts)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = np.repeat(np.cumsum(lengths) - lengths, counts) + nth
        places[lengths[rows] == 0] = -1
        spread = take_rows(ArrowColumn(lists.flatten(), made[-1].type), places)
        numbers = pa.array(nth, pa.int32(), mask=places < 0)
        parts = [*_read(before, rows), *([ArrowColumn(numbers, INT)] if with_place else ())]
        return ColumnBatch(len(rows), dict(enumerate([*parts, spread, *_read(after, rows)])))

    return Relation((*before.columns, *made, *after.columns), compute)


def _read(relation: Relation, rows: np.ndarray) -> list[Values]:
    batch = relation.rows()
    return [take_rows(batch.column(i), rows) for i in range(len(relation.columns))]


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
