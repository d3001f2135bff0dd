"""`kind: lookup` for the code that works on tables of any kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sluice.declare.column_lineage import InputColumns, MadeFrom, Seen, of_carried, of_input
from sluice.declare.document import Where
from sluice.declare.registry import Kind
from sluice.declare.resolution import (
    Scope,
    TableMistakes,
    check_alike,
    check_covers_key,
    joined_dimensions,
    plain_columns,
    unknown_of,
)
from sluice.declare.table import Table, carried_key, hidden_of, tables_not_stored
from sluice.kinds.lookup import Join, Lookup
from sluice.language.names import BATCH, HIDDEN_TYPES
from sluice.language.types import are_comparable

if TYPE_CHECKING:
    from sluice.declare.table import Graph
    from sluice.engine.operator import InputRows, Operator
    from sluice.engine.plan import Node
    from sluice.engine.tracing import Condition, Groups, Unmatched


class LookupKind(Kind):
    """Kind of facts joined with dimensions."""

    model = Lookup

    def resolve(
        self, spec: Lookup, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        """Return the table: the columns of the fact and the dimensions, or the selected ones."""
        fact = inputs["from",]
        dimensions = joined_dimensions((join.dimension for join in spec.join), inputs)
        qualified = {join.qualifier: dimensions[join.dimension].columns for join in spec.join}
        scope = Scope(fact.columns, qualified)
        for i, join in enumerate(spec.join):
            _check_join(i, join, Scope(fact.columns), dimensions[join.dimension], mistakes)
        scope.check_select(spec.select, mistakes)
        scope.check_condition(spec.where, mistakes, "where")
        if spec.time:
            scope.check_time(spec.time, mistakes, "time")
            _check_history(spec, dimensions, mistakes)
        columns = (
            _all_columns(fact, dimensions) if spec.select is None else scope.types_of(spec.select)
        )
        unchanged = fact.columns if spec.select is None else plain_columns(spec.select)
        keys = carried_key(fact, unchanged)
        is_corrected = spec.refresh or spec.as_of == "event_time"
        hidden = {**hidden_of(keys), **({} if is_corrected else {BATCH: HIDDEN_TYPES[BATCH]})}
        ids = (fact.id, *(table.id for table in dimensions.values()))
        through = tables_not_stored(dimensions.values())
        return Table(
            spec.name,
            spec.pipeline,
            spec.KIND,
            columns,
            tuple(keys),
            spec,
            ids,
            hidden,
            through=through,
        )

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.lookup.batch import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        spec = table.spec
        assert isinstance(spec, Lookup)
        facts = inputs[table.reference(spec.from_)]
        dimensions = {j.qualifier: inputs[table.reference(j.dimension)] for j in spec.join}
        sees = Seen(facts, dimensions)

        def shown(name: str) -> InputColumns:
            if spec.select is not None:
                return sees.of(spec.select[name])
            owner = next(t for t in (facts, *dimensions.values()) if name in t.columns)
            return of_input(owner, name)

        return {**of_carried(table, facts), **{name: shown(name) for name in table.columns}}

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        from sluice.kinds.lookup.operator import trace_rows

        return trace_rows(operator, groups)

    def list_conditions(self, spec: Lookup, found: Sequence[Condition]) -> Sequence[Condition]:
        """Return `where` alone: joins are looked at where no fact gets past them."""
        return found

    def find_unmatched(
        self, operator: Operator, wanted: InputRows, prepared: InputRows, references: InputRows
    ) -> Iterator[Unmatched]:
        from sluice.kinds.lookup.operator import find_unmatched

        return find_unmatched(operator, wanted, prepared, references)


def _all_columns(fact: Table, dimensions: Mapping[str, Table]) -> dict[str, str]:
    columns = dict(fact.columns)
    for table in dimensions.values():
        columns.update({k: v for k, v in table.columns.items() if k not in columns})
    return columns


def _check_join(i: int, join: Join, fact: Scope, dimension: Table, mistakes: TableMistakes) -> None:
    at: Where = ("join", i, "on")
    for expression, column in join.on:
        fact.check(expression, mistakes, *at)
        if column not in dimension.columns:
            mistakes.add(at, unknown_of(join.qualifier, column, dimension.columns))
            continue
        left, right = fact.type_of(expression), dimension.columns[column]
        if not are_comparable(left, right):
            mistakes.add(
                at,
                f"{expression.text!r} is {left} and {join.qualifier}.{column} is {right}: "
                "they can't be compared; cast one of them",
            )
            continue
        check_alike(expression.text, left, f"{join.qualifier}.{column}", right, mistakes, at)
    check_covers_key(dimension, [column for _, column in join.on], mistakes, at)


def _check_history(spec: Lookup, dimensions: Mapping[str, Table], mistakes: TableMistakes) -> None:
    for i, join in enumerate(spec.join):
        if not dimensions[join.dimension].spec.has_history:
            mistakes.add(
                ("join", i, "dimension"),
                f"as_of: event_time needs the past of {join.dimension}: "
                "declare it with history: true",
            )
