"""Resolution of selects."""

from collections.abc import Mapping

from sluice.declare.document import Where
from sluice.declare.resolution.scope import Report, Scope
from sluice.declare.table import Table, carried_name, hidden_of
from sluice.kinds.select.spec import Selection


def resolve(spec: Selection, inputs: Mapping[Where, Table], report: Report) -> Table:
    """Return the table: the selected columns, by the input's key or, if distinct, by all of them.

    Key columns of the input have the names that they are selected under, or are carried along,
    hidden.
    """
    source = inputs["from",]
    scope = Scope(source.columns)
    scope.check_condition(spec.where, report, "where")
    scope.check_select(spec.select, report)
    columns = dict(source.columns) if spec.select is None else scope.types_of(spec.select)
    if spec.distinct:
        Scope(columns).check_key(tuple(columns), report, *(("select",) if spec.select else ()))
        keys = columns
    else:
        keys = {name: source.type_of(column) for name, column in keys_of(spec, source).items()}
    hidden = hidden_of(keys)
    return Table(
        spec.name, spec.pipeline, spec.KIND, columns, tuple(keys), spec, (source.id,), hidden
    )


def keys_of(spec: Selection, source: Table) -> dict[str, str]:
    """Return key column of the view -> key column of the input."""
    if spec.select is None:
        return {carried_name(column, source.columns): column for column in source.key}
    plain = {expression.plain_column: name for name, expression in spec.select.items()}
    plain |= {name: name for name in spec.select if spec.select[name].plain_column == name}
    return {plain.get(column) or carried_name(column, ()): column for column in source.key}
