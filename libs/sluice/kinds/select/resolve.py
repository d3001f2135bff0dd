"""Resolution of selects."""

from collections.abc import Mapping

from sluice.declare.document import Where
from sluice.declare.resolution.scope import Report, Scope, plain_columns
from sluice.declare.table import Table, carried, hidden_of
from sluice.kinds.select.spec import Selection


def resolve(spec: Selection, inputs: Mapping[Where, Table], report: Report) -> Table:
    """Return the table: the selected columns, by the input's key or, if distinct, by all of them.

    Key columns of the input that are not selected are carried along, hidden.
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
        keys = carried(source, columns if spec.select is None else plain_columns(spec.select))
    hidden = hidden_of(keys)
    return Table(
        spec.name, spec.pipeline, spec.KIND, columns, tuple(keys), spec, (source.id,), hidden
    )
