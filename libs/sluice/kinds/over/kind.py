"""`kind: over` for the code that works on tables of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sluice.declare.column_lineage import MadeFrom, Seen, as_changed, of_carried
from sluice.declare.document import Where
from sluice.declare.registry import Kind
from sluice.declare.resolution import Scope, TableMistakes
from sluice.declare.table import Table, carried_key, hidden_of
from sluice.kinds.over import BY, EXACT, OTHERS, RANKS, SUMS, Over, WindowCall, WindowedExpression
from sluice.language.expression import Expression, SortKey
from sluice.language.inference import aggregate_type, whole_type
from sluice.language.types import (
    DAY,
    INTEGERS,
    INTERVALS,
    KINDS,
    MONTHS,
    NUMERIC,
    base_name,
    family,
    fits,
    widen_exactly,
)

if TYPE_CHECKING:
    from sluice.declare.table import Graph
    from sluice.engine.plan import Node

INEXACT = "{} depends on the order of ties; write OVER (w ROWS UNBOUNDED PRECEDING)"


class OverKind(Kind):
    """Kind of rows with window functions over their partition."""

    model = Over
    needs = "rows near changes"

    def resolve(self, spec: Over, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
        """Return the table: the selected columns, by the input's key, as far as needed hidden."""
        source = inputs["from",]
        scope = Scope(source.columns)
        scope.check_condition(spec.where, mistakes, "where")
        scope.check_groups(spec.partition_by, mistakes, "partition_by")
        scope.check_order(spec.order_by, mistakes, "order_by")
        columns = {
            n: _type(n, one, spec.order_by, scope, mistakes) for n, one in spec.select.items()
        }
        plain = {name for name, one in spec.select.items() if one.plain_column == name}
        keys = carried_key(source, plain)
        by = {f"{BY}{i}": scope.type_of(e) for i, e in enumerate(spec.partition_by)}
        hidden = {**by, **hidden_of(keys)}
        ids = (source.id,)
        return Table(spec.name, spec.pipeline, spec.KIND, columns, tuple(keys), spec, ids, hidden)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.over.operator import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        """Return the columns that each expression and its calls read; not those of the window."""
        spec, source = table.spec, inputs[table.inputs[0]]
        assert isinstance(spec, Over)
        sees = Seen(source)
        shown = {
            n: sees.of(one.expression) | as_changed(sees.of(*one.read))
            for n, one in spec.select.items()
        }
        by = {f"{BY}{i}": sees.of(expression) for i, expression in enumerate(spec.partition_by)}
        return {**of_carried(table, source), **by, **shown}


def _type(
    name: str,
    one: WindowedExpression,
    order: Sequence[SortKey],
    scope: Scope,
    mistakes: TableMistakes,
) -> str:
    """Return the type of a selected column; '' if only Spark knows it."""
    at = ("select", name)
    types = {call.name: _type_of_call(call, order, scope, mistakes, *at) for call in one.calls}
    whole = Scope({**scope.columns, **types})
    whole.check(one.expression, mistakes, *at)
    whole.check_storable(one.expression, mistakes, *at)
    return whole.type_of(one.expression)


def _type_of_call(
    call: WindowCall, order: Sequence[SortKey], scope: Scope, mistakes: TableMistakes, *at: str
) -> str:
    for argument in call.arguments:
        scope.check(argument, mistakes, *at)
    _check_distances(call, order, scope, mistakes, *at)
    if call.function in OTHERS:
        return _type_of_other(call, scope, mistakes, *at)
    if len(call.arguments) == 3:
        value, _, default = map(scope.type_of, call.arguments)
        if not widen_exactly(value, default):
            mistakes.add(at, f"{call.sql}: its default is {default}, not {value}")
    if call.aggregate is None:
        return RANKS.get(call.function) or scope.type_of(call.arguments[0])
    scope.check_aggregate(call.aggregate, mistakes, *at)
    type_ = scope.type_of(call.aggregate.argument)
    _check_ties(call, type_, mistakes, *at)
    return aggregate_type(call.aggregate, type_)


def _type_of_other(call: WindowCall, scope: Scope, mistakes: TableMistakes, *at: str) -> str:
    kinds, type_ = OTHERS[call.function]
    for argument, kind in zip(call.arguments, kinds, strict=True):
        found = scope.type_of(argument)
        if not fits(found, kind):
            _, wanted = KINDS[kind]
            mistakes.add(at, f"{call.sql}: {argument.text!r} is {found}, not {wanted}")
    _check_ties(call, "", mistakes, *at)
    return type_ or scope.type_of(call.arguments[0])


def _check_ties(call: WindowCall, type_: str, mistakes: TableMistakes, *at: str) -> None:
    is_exact = type_ in INTEGERS or base_name(type_) == "DECIMAL"
    # Does the result depend on the order in which the aggregate takes its rows?
    is_settled = call.function in EXACT or (is_exact and call.function in SUMS)
    if call.counts_ties and not is_settled:
        of = f" of {type_ or 'an unknown type'}" if call.function in SUMS else ""
        mistakes.add(at, INEXACT.format(f"{call.sql}{of}"))


def _check_distances(
    call: WindowCall, order: Sequence[SortKey], scope: Scope, mistakes: TableMistakes, *at: str
) -> None:
    """Note bounds of a RANGE that Spark can't add to the value of the order."""
    for distance in call.distances:
        type_, by = scope.type_of(order[0].expression), order[0].expression.text
        what, is_fit = _distance_of(type_, distance)
        if not is_fit:
            why = f"the order's {by!r} is {type_}; a RANGE of it goes by {what}"
            mistakes.add(at, f"{call.sql}: {why}, not by {distance.text}")


def _distance_of(type_: str, distance: Expression) -> tuple[str, bool]:
    """Return what a RANGE over values of that type goes by, and whether this is one."""
    found = whole_type(distance, {}, {})
    match family(type_):
        case "integer" | "long":
            return "a whole number", found in INTEGERS
        case "decimal" | "fraction":
            return "a number", family(found) in NUMERIC
        case "date":
            return "whole days, INTERVAL '7' DAYS or months", found in (*INTEGERS, DAY, MONTHS)
        case "timestamp" | "local":
            return "an interval, such as INTERVAL '7' DAYS", family(found) in INTERVALS
        case "":
            return "", True
    return "UNBOUNDED and CURRENT ROW", False
