"""Views of dimensions for the code that works on tables of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluice.declare.column_lineage import MadeFrom, Seen
from sluice.declare.document import Where
from sluice.declare.registry import Kind
from sluice.declare.resolution import (
    Scope,
    TableMistakes,
    check_alike,
    check_covers_key,
    joined_dimensions,
)
from sluice.declare.table import Table, tables_not_stored
from sluice.dimension_views import DimensionView
from sluice.language.expression import Expression, read_pairs
from sluice.language.names import UnknownName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sluice.read.keyed import KeyValues
    from sluice.read.lake import Lake


class DimensionViewKind(Kind):
    """Kind of dimensions that are joined when they are read, and never stored."""

    model = DimensionView

    def resolve(
        self, spec: DimensionView, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        """Return the view's table; its key is the first dimension's."""
        dimensions = joined_dimensions((join.dimension for join in spec.join), inputs)
        qualified = {name.rpartition(".")[2]: table.columns for name, table in dimensions.items()}
        scope = Scope({}, qualified)
        _check_names(spec, mistakes)
        for i in range(len(spec.join)):
            _check_join(spec, i, dimensions, mistakes)
        scope.check_condition(spec.where, mistakes, "where")
        scope.check_select(spec.select, mistakes)
        columns = scope.types_of(spec.select)
        key = _key(spec, dimensions, mistakes)
        ids = tuple(table.id for table in dimensions.values())
        through = tables_not_stored(dimensions.values())
        return Table(spec.name, spec.pipeline, spec.KIND, columns, key, spec, ids, through=through)

    def compute_rows(self, table: Table, inputs: Mapping[str, DataFrame]) -> DataFrame:
        from pyspark.sql import functions as F

        view = table.spec
        assert isinstance(view, DimensionView)
        structs = {}
        for join in view.join:
            rows = inputs[table.reference(join.dimension)]
            row = F.struct(*[F.col(f"`{name}`") for name in rows.columns])
            structs[join.dimension] = rows.select(row.alias(join.dimension.rpartition(".")[2]))
        first, *others = view.join
        found = structs[first.dimension]
        for join in others:
            assert join.on is not None
            found = found.join(structs[join.dimension], F.expr(join.on.sql), "left")
        met = found.where(view.where.sql) if view.where else found
        return met.select(*[F.expr(e.sql).alias(name) for name, e in view.select.items()])

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        spec = table.spec
        assert isinstance(spec, DimensionView)
        named = {
            j.dimension.rpartition(".")[2]: inputs[table.reference(j.dimension)] for j in spec.join
        }
        return {name: Seen(qualified=named).of(e) for name, e in spec.select.items()}

    def open_table(
        self, lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
    ) -> KeyValues:
        from sluice.dimension_views.reader import open_table

        return open_table(lake, table, version, backward_iteration=backward_iteration)


def _check_names(spec: DimensionView, mistakes: TableMistakes) -> None:
    names = [join.dimension.rpartition(".")[2] for join in spec.join]
    for i, name in enumerate(names):
        if name in names[:i]:
            mistakes.add(("join", i, "dimension"), f"{name} is joined twice")


def _check_join(
    spec: DimensionView, i: int, inputs: Mapping[str, Table], mistakes: TableMistakes
) -> None:
    join, at = spec.join[i], ("join", i, "on")
    if i == 0 or join.on is None:
        if (i == 0) != (join.on is None):
            mistakes.add(at, "the first dimension takes no `on`; every other one needs it")
        return
    before = [other.dimension for other in spec.join[:i]]
    names = {name.rpartition(".")[2]: inputs[name].columns for name in before if name in inputs}
    try:
        pairs = read_pairs(join.on.sql, join.dimension.rpartition(".")[2])
    except ValueError as error:
        mistakes.add(at, UnknownName(str(error)))
        return
    added, name = inputs[join.dimension], join.dimension.rpartition(".")[2]
    scope = Scope({}, {**names, name: added.columns})
    scope.check(join.on, mistakes, *at)
    for tree, column in pairs:
        left, right = Expression.of(tree), added.columns.get(column, "")
        check_alike(left.text, scope.type_of(left), f"{name}.{column}", right, mistakes, at)
    check_covers_key(added, [column for _, column in pairs], mistakes, at)


def _key(
    spec: DimensionView, inputs: Mapping[str, Table], mistakes: TableMistakes
) -> tuple[str, ...]:
    base = inputs[spec.join[0].dimension]
    selected = {expression.plain_column: name for name, expression in spec.select.items()}
    key = base.current_key
    lacking = [column for column in key if f"{base.name}.{column}" not in selected]
    if lacking:
        names = ", ".join(f"{base.name}.{column}" for column in lacking)
        mistakes.add(("select",), f"the key of {base.name} must be selected: {names}")
    return tuple(selected.get(f"{base.name}.{column}", column) for column in key)
