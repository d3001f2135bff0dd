"""Resolution of views with window functions."""

from collections.abc import Mapping

from sluice.declare.document import Where
from sluice.declare.resolution.scope import Report, Scope
from sluice.declare.table import Table, carried, hidden_of
from sluice.kinds.over.spec import Over
from sluice.kinds.over.windowed import RANKS, Call, Windowed
from sluice.language.families import widen_exactly
from sluice.language.inference import aggregate_type
from sluice.language.types import INTEGERS, head

BY = "_sluice_by_"  # and a number: a value that the rows of a partition share
INEXACT = "{} depends on the order of rows that tie; write OVER (w ROWS UNBOUNDED PRECEDING)"


def resolve(spec: Over, inputs: Mapping[Where, Table], report: Report) -> Table:
    """Return the table: the selected columns, by the input's key, as far as needed hidden."""
    source = inputs["from",]
    scope = Scope(source.columns)
    scope.check_condition(spec.where, report, "where")
    scope.check_groups(spec.partition_by, report, "partition_by")
    scope.check_order(spec.order_by, report, "order_by")
    columns = {n: _type(n, one, scope, report) for n, one in spec.select.items()}
    plain = {name for name, one in spec.select.items() if one.plain_column == name}
    keys = carried(source, plain)
    by = {f"{BY}{i}": scope.type_of(e) for i, e in enumerate(spec.partition_by)}
    hidden = {**by, **hidden_of(keys)}
    ids = (source.id,)
    return Table(spec.name, spec.pipeline, spec.KIND, columns, tuple(keys), spec, ids, hidden)


def _type(name: str, one: Windowed, scope: Scope, report: Report) -> str:
    """Return the type of a selected column; '' if only Spark knows it."""
    at = ("select", name)
    types = {call.name: _type_of_call(call, scope, report, *at) for call in one.calls}
    whole = Scope({**scope.columns, **types})
    whole.check(one.expression, report, *at)
    whole.check_storable(one.expression, report, *at)
    return whole.type_of(one.expression)


def _check_default(call: Call, scope: Scope, report: Report, *at: str) -> None:
    value, _, default = (scope.type_of(argument) for argument in call.arguments)
    if not widen_exactly(value, default):
        report.add(at, f"{call.sql}: its default is {default}, not {value}")


def _type_of_call(call: Call, scope: Scope, report: Report, *at: str) -> str:
    for argument in call.arguments:
        scope.check(argument, report, *at)
    if len(call.arguments) == 3:
        _check_default(call, scope, report, *at)
    if call.aggregate is None:
        return RANKS.get(call.function) or scope.type_of(call.arguments[0])
    scope.check_aggregate(call.aggregate, report, *at)
    type_ = scope.type_of(call.aggregate.argument)
    is_exact = type_ in INTEGERS or head(type_) == "DECIMAL"
    if call.function in ("sum", "avg") and call.counts_ties and not is_exact:
        report.add(at, INEXACT.format(f"{call.sql} of {type_ or 'an unknown type'}"))
    return aggregate_type(call.aggregate, type_)
