"""Supported relations of Spark Connect's protocol."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.connect import proto
from pyspark.sql.pandas.types import from_arrow_schema

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter import expressions as E
from sluice.interpreter.expressions import from_protocol as protocol
from sluice.interpreter.expressions.compiling import Bindings, RelationColumn, compile_node, find
from sluice.interpreter.relations import (
    Budget,
    CompiledSortItem,
    Narrow,
    Relation,
    join,
    join_using,
    number_rows,
    of_arrow,
    refuse_place,
    sort_rows,
)
from sluice.interpreter.relations.projecting import aggregate, is_aggregated, project
from sluice.interpreter.values import Values, as_nullable, is_fraction, wider
from sluice.interpreter.values.casts import boolean, cast
from sluice.interpreter.values.column_batch import (
    ColumnBatch,
    Rows,
    column,
    column_of,
    concatenate,
    map_values,
    null_mask,
    settle,
    true_mask,
)
from sluice.interpreter.values.numbering import has_floats, normal

UNION = proto.SetOperation.SET_OP_TYPE_UNION
GROUPBY = proto.Aggregate.GROUP_TYPE_GROUPBY
KEPT = 512  # relations, in the order of their last use


class Plans:
    """Reader of plans. A relation that occurs again, by its id, is computed once.

    `budget`: of the rows that they read, until they are dropped.
    """

    def __init__(self, tables: Mapping[str, Relation], budget: Budget) -> None:
        self._tables, self.budget = tables, budget
        self._known: dict[int, Relation] = {}

    def relation(self, plan: proto.Relation) -> Relation:
        """Return the relation of a plan. Raises UnsupportedLocally for unknown parts."""
        known = plan.common.plan_id if plan.HasField("common") else None
        if known in self._known:
            return self._known[known]
        kind = plan.WhichOneof("rel_type") or "nothing"
        if kind not in _READERS:
            raise UnsupportedLocally(f"the relation {kind}")
        found = _READERS[kind](self, getattr(plan, kind))
        if known is not None:
            self._known[known] = found
            if len(self._known) > KEPT:
                del self._known[next(iter(self._known))]
        return found

    def forget(self) -> None:
        """Drop the relations that were read; stored rows are read again if they are needed."""
        self._known.clear()
        for relation in self._tables.values():
            relation.drop()
        self.budget.taken = 0

    def table(self, name: str) -> Relation:
        """Return the rows passed in under that name."""
        if name not in self._tables:
            raise UnsupportedLocally(f"the unknown table {name}")
        return self._tables[name]


def _rows(
    relation: Relation, chosen: Callable[[ColumnBatch], Rows], narrow: Narrow | None = None
) -> Relation:
    """Return rows of a relation by number, in that order."""

    def compute() -> ColumnBatch:
        batch = relation.rows()
        return batch.take(chosen(batch))

    return Relation(relation.columns, compute, narrow)


def _local(plans: Plans, plan: Any) -> Relation:
    schema = protocol.schema_of(plan.schema) if plan.schema else None
    if not plan.HasField("data"):
        assert schema
        return Relation(
            tuple(RelationColumn(f.name, as_nullable(f.dataType)) for f in schema.fields),
            lambda: ColumnBatch(0, dict(enumerate([[] for _ in schema.fields]))),
        )
    rows = pa.ipc.open_stream(plan.data).read_all()
    return of_arrow(
        rows, schema or from_arrow_schema(rows.schema, prefer_timestamp_ntz=True), plans.budget
    )


def _range(plans: Plans, plan: Any) -> Relation:
    numbers = range(plan.start, plan.end, plan.step)
    plans.budget.take(8 * len(numbers))
    column_ = RelationColumn("id", T.LongType())
    return Relation((column_,), lambda: ColumnBatch(len(numbers), {0: list(numbers)}))


def _project(plans: Plans, plan: Any) -> Relation:
    relation = plans.relation(plan.input) if plan.HasField("input") else ONE_ROW
    nodes = [protocol.read_expression(e) for e in plan.expressions]
    if any(is_aggregated(node) for node in nodes):
        return aggregate(relation, [], nodes)
    return project(relation, nodes)


def _where(relation: Relation, node: E.ExpressionNode) -> Relation:
    holds = boolean(compile_node(node, Bindings(relation.columns)))

    def rows(batch: ColumnBatch) -> Rows:
        found = holds.run(batch)
        if one := settle(found):
            return range(batch.count if one.value else 0)
        return np.flatnonzero(true_mask(found))

    return _rows(relation, rows, relation.through(lambda less: _where(less, node)))


def _join(plans: Plans, plan: Any) -> Relation:
    left, right = plans.relation(plan.left), plans.relation(plan.right)
    if plan.using_columns:
        return join_using(left, right, plan.join_type, list(plan.using_columns), plans.budget)
    given = plan.HasField("join_condition")
    condition = protocol.read_expression(plan.join_condition) if given else None
    return join(left, right, plan.join_type, condition, plans.budget)


def _set_operation(plans: Plans, plan: Any) -> Relation:
    if plan.set_op_type != UNION or not plan.is_all:
        raise UnsupportedLocally("a set operation other than UNION ALL")
    left, right = plans.relation(plan.left_input), plans.relation(plan.right_input)
    if plan.by_name:
        left, right = _by_name(left, right, missing=plan.allow_missing_columns)
    if len(left.columns) != len(right.columns):
        raise UnsupportedLocally("a union of tables with different columns")
    pairs = list(zip(left.columns, right.columns, strict=True))
    types = [wider(a.type, b.type) for a, b in pairs]
    columns = tuple(RelationColumn(a.name, t) for (a, _), t in zip(pairs, types, strict=True))

    def compute() -> ColumnBatch:
        a, b = left.rows(), right.rows()

        def both(i: int) -> Values:
            one, other = (cast(column(i, c.type), types[i]) for c in pairs[i])
            return concatenate([one.run(a), other.run(b)], types[i])

        return ColumnBatch(a.count + b.count, {}, {i: partial(both, i) for i in range(len(pairs))})

    return Relation(columns, compute)


def _by_name(left: Relation, right: Relation, *, missing: bool) -> tuple[Relation, Relation]:
    """Return both with the columns of either, in the order of the left's."""
    names = {c.name.lower(): c for c in left.columns}
    others = {c.name.lower(): c for c in right.columns}
    if not missing and names.keys() != others.keys():
        raise UnsupportedLocally("a union of tables with different columns")
    every = [*left.columns, *(c for n, c in others.items() if n not in names)]
    return _only(left, every), _only(right, every)


def _only(relation: Relation, wanted: Sequence[RelationColumn]) -> Relation:
    lower = [c.name.lower() for c in relation.columns]
    places = [lower.index(c.name.lower()) if c.name.lower() in lower else None for c in wanted]
    columns = [
        RelationColumn(c.name, c.type if p is None else relation.columns[p].type)
        for c, p in zip(wanted, places, strict=True)
    ]
    return relation.choose(places, columns)


def _drop_nulls(plans: Plans, plan: Any) -> Relation:
    """Return the rows without a null in these columns, or in any."""
    relation = plans.relation(plan.input)
    if plan.HasField("min_non_nulls"):
        raise UnsupportedLocally("dropna with a threshold")
    names = plan.cols or [c.name for c in relation.columns]
    places = [find((name,), relation.columns)[0] for name in names]

    def rows(batch: ColumnBatch) -> np.ndarray:
        missing = np.zeros(batch.count, bool)
        for place in places:
            values, type_ = batch.column(place), relation.columns[place].type
            missing |= null_mask(values)
            if is_fraction(type_):  # Spark drops NaN as well
                missing |= np.isnan(column_of(values, type_).to_numpy(zero_copy_only=False))
        return np.flatnonzero(~missing)

    return _rows(relation, rows)


def _sort(plans: Plans, plan: Any) -> Relation:
    relation = plans.relation(plan.input)
    bindings = Bindings(relation.columns)
    keys = [CompiledSortItem.of(protocol.order_of(o), bindings) for o in plan.order]
    refuse_place([key.value for key in keys])

    return _rows(
        relation, lambda batch: sort_rows([rank for key in keys for rank in key.ranks(batch)])
    )


def _aggregate(plans: Plans, plan: Any) -> Relation:
    if plan.group_type != GROUPBY:
        raise UnsupportedLocally("a grouping other than GROUP BY")
    by = [protocol.read_expression(e) for e in plan.grouping_expressions]
    nodes = [protocol.read_expression(e) for e in plan.aggregate_expressions]
    return aggregate(plans.relation(plan.input), by, nodes)


def _with_columns(plans: Plans, plan: Any) -> Relation:
    relation = plans.relation(plan.input)
    made = {a.name[0].lower(): protocol.read_expression(a.expr) for a in plan.aliases}
    names = {a.name[0].lower(): a.name[0] for a in plan.aliases}
    found = project(relation, [E.Star(), *(E.Alias(n, (names[k],)) for k, n in made.items())])
    width = len(relation.columns)
    places = {name: width + i for i, name in enumerate(made)}
    order = [places.pop(c.name.lower(), i) for i, c in enumerate(relation.columns)]
    order += places.values()

    return found.choose(order)


def _drop(plans: Plans, plan: Any) -> Relation:
    relation = plans.relation(plan.input)
    gone = {name.lower() for name in plan.column_names}
    for expression in plan.columns:
        name = E.split_name(expression.unresolved_attribute.unparsed_identifier)
        gone |= {relation.columns[find(name, relation.columns)[0]].name.lower()}
    kept = [i for i, c in enumerate(relation.columns) if c.name.lower() not in gone]
    return relation.choose(kept)


def _deduplicate(plans: Plans, plan: Any) -> Relation:
    relation = plans.relation(plan.input)
    names = [c.name for c in relation.columns] if plan.all_columns_as_keys else plan.column_names
    places = [find((name,), relation.columns)[0] for name in names]
    values = [column(i, relation.columns[i].type) for i in places]

    def rows(batch: ColumnBatch) -> np.ndarray:
        return np.unique(number_rows(batch, values), return_index=True)[1]

    return _without_signs(_rows(relation, rows), places)


def _without_signs(relation: Relation, places: Sequence[int]) -> Relation:
    """Return the rows with 0.0 for -0.0 in these columns, as Spark shows grouping keys."""

    def compute() -> ColumnBatch:
        batch = relation.rows()

        def show(at: int) -> Values:
            return map_values(normal(relation.columns[at].type), batch.column(at))

        return batch.beside({i: partial(show, i) for i in signed})

    signed = [i for i in places if has_floats(relation.columns[i].type)]
    return Relation(relation.columns, compute) if signed else relation


def _to_df(plans: Plans, plan: Any) -> Relation:
    relation = plans.relation(plan.input)
    pairs = zip(relation.columns, plan.column_names, strict=True)
    return relation.renamed([RelationColumn(name, c.type) for c, name in pairs])


def _rename_columns(plans: Plans, plan: Any) -> Relation:
    relation = plans.relation(plan.input)
    names = {r.col_name.lower(): r.new_col_name for r in plan.renames}
    names |= {old.lower(): new for old, new in plan.rename_columns_map.items()}
    return relation.renamed(
        [
            RelationColumn(names.get(c.name.lower(), c.name), c.type, c.alias)
            for c in relation.columns
        ]
    )


ONE_ROW = Relation((), lambda: ColumnBatch(1, {}))
_READERS: Mapping[str, Callable[[Plans, Any], Relation]] = {
    "local_relation": _local,
    "range": _range,
    "chunked_cached_local_relation": lambda plans, plan: plans.table(plan.dataHashes[0]),
    "project": _project,
    "filter": lambda plans, plan: _where(
        plans.relation(plan.input), protocol.read_expression(plan.condition)
    ),
    "subquery_alias": lambda plans, plan: plans.relation(plan.input).under(plan.alias),
    "join": _join,
    "set_op": _set_operation,
    "sort": _sort,
    "limit": lambda plans, plan: _rows(
        plans.relation(plan.input), lambda batch: range(min(plan.limit, batch.count))
    ),
    "aggregate": _aggregate,
    "with_columns": _with_columns,
    "drop": _drop,
    "drop_na": _drop_nulls,
    "deduplicate": _deduplicate,
    "to_df": _to_df,
    "with_columns_renamed": _rename_columns,
    # These only affect how Spark computes.
    **dict.fromkeys(
        ("hint", "repartition", "repartition_by_expression"),
        lambda plans, plan: plans.relation(plan.input),
    ),
}
