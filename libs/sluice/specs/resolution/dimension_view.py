"""Dimensions joined to dimensions."""

from collections.abc import Mapping

from sluice.specs.dimension import DimensionView
from sluice.specs.resolution.scope import Report, Scope
from sluice.specs.table import Table


def resolve_dimension_view(spec: DimensionView, inputs: Mapping[str, Table], report: Report) -> Table:
    """The view's columns; its key is the first dimension's."""
    joined = {name.split(".")[-1]: table.columns for name, table in inputs.items()}
    scope = Scope({}, joined)
    for i, join in enumerate(spec.join):
        scope.check(join.on, report, "join", i, "on")
    for name, expression in spec.select.items():
        scope.check(expression, report, "select", name)
    columns = {name: scope.type_of(expression) for name, expression in spec.select.items()}
    key = _key(spec, inputs, report)
    ids = tuple(table.id for table in inputs.values())
    return Table(spec.name, spec.pipeline, "dimension_view", columns, key, spec, ids)


def _key(spec: DimensionView, inputs: Mapping[str, Table], report: Report) -> tuple[str, ...]:
    base = inputs.get(spec.join[0].dimension)
    if base is None:
        return ()
    selected = {expression.plain_column: name for name, expression in spec.select.items()}
    lacking = [column for column in base.key if f"{base.name}.{column}" not in selected]
    if lacking:
        report.add(("select",), f"the key of {base.name} must be selected: {', '.join(lacking)}")
    return tuple(selected.get(f"{base.name}.{column}", column) for column in base.key)
