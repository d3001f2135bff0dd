"""All that others ask of a cogroup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluice.declare.kind import Kind
from sluice.kinds.cogroup.spec import Cogroup

if TYPE_CHECKING:
    from sluice.declare.graph import Graph
    from sluice.declare.meaning.column_lineage import MadeFrom
    from sluice.declare.resolution.scope import TableMistakes
    from sluice.declare.table import Table
    from sluice.declare.text.document import Where
    from sluice.engine.planning.node import Node
    from sluice.engine.query.lineage import Groups
    from sluice.engine.query.operator import InputRows, Operator
    from sluice.read.conditions.key_order import KeyRange
    from sluice.read.naming import Given, NamingOption
    from sluice.read.ordered.keyed import KeyedTable


class CogroupKind(Kind):
    """`Cogroup` as a kind of table."""

    model = Cogroup

    def resolve(
        self, spec: Cogroup, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        from sluice.kinds.cogroup.resolve import resolve

        return resolve(spec, inputs, mistakes)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.cogroup.nodes import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        from sluice.kinds.cogroup.columns import columns

        return columns(table, inputs)

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        from sluice.kinds.cogroup.lineage import contributing

        return contributing(operator, groups)

    def naming_options(self) -> Mapping[str, NamingOption]:
        from sluice.kinds.cogroup.naming import OPTIONS

        return OPTIONS

    def find_ranges(self, table: KeyedTable, spec: Cogroup, given: Given) -> tuple[KeyRange, ...]:
        from sluice.kinds.cogroup.naming import ranges

        return ranges(table, spec, given)
