"""Resolution of dimension views."""

from collections.abc import Mapping

from sluice.declare.resolution.joins import check_alike, check_covers_key, joined
from sluice.declare.resolution.scope import Scope, TableMistakes
from sluice.declare.table import Table, unstored
from sluice.declare.text.document import Where
from sluice.dimension_views.spec import DimensionView
from sluice.language.expression import Expression
from sluice.language.join_syntax import read_pairs
from sluice.language.names import UnknownName


def resolve(spec: DimensionView, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
    """Return the view's table; its key is the first dimension's."""
    dimensions = joined((join.dimension for join in spec.join), inputs)
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
    through = unstored(dimensions.values())
    return Table(spec.name, spec.pipeline, spec.KIND, columns, key, spec, ids, through=through)


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
