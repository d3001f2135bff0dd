"""All that others ask of a join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sluice.declare.kind import Kind
from sluice.kinds.join.spec import EquiJoin

if TYPE_CHECKING:
    from sluice.declare.graph import Graph
    from sluice.declare.meaning.column_lineage import MadeFrom
    from sluice.declare.resolution.scope import TableMistakes
    from sluice.declare.table import Table
    from sluice.declare.text.document import Where
    from sluice.engine.planning.node import Node
    from sluice.engine.query.absence import Condition, Unmatched
    from sluice.engine.query.lineage import Groups
    from sluice.engine.query.operator import InputRows, Operator


class JoinKind(Kind):
    """`EquiJoin` as a kind of table."""

    model = EquiJoin

    def resolve(
        self, spec: EquiJoin, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        from sluice.kinds.join.resolve import resolve

        return resolve(spec, inputs, mistakes)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.join.nodes import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        from sluice.kinds.join.columns import columns

        return columns(table, inputs)

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        from sluice.kinds.join.lineage import contributing

        return contributing(operator, groups)

    def list_conditions(self, spec: EquiJoin, found: Sequence[Condition]) -> Sequence[Condition]:
        from sluice.kinds.join.absence import conditions

        return conditions(spec, found)

    def find_unmatched(
        self, operator: Operator, wanted: InputRows, prepared: InputRows, references: InputRows
    ) -> Iterator[Unmatched]:
        from sluice.kinds.join.absence import unmatched

        return unmatched(operator, wanted, prepared, references)
