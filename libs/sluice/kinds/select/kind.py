"""All that others ask of a select."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluice.declare.kind import Kind
from sluice.kinds.select.spec import Selection

if TYPE_CHECKING:
    from sluice.declare.graph import Graph
    from sluice.declare.meaning.column_lineage import MadeFrom
    from sluice.declare.resolution.scope import TableMistakes
    from sluice.declare.table import Table
    from sluice.declare.text.document import Where
    from sluice.engine.planning.node import Node


class SelectKind(Kind):
    """`Selection` as a kind of table."""

    model = Selection

    def resolve(
        self, spec: Selection, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        from sluice.kinds.select.resolve import resolve

        return resolve(spec, inputs, mistakes)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.select.nodes import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        from sluice.kinds.select.columns import columns

        return columns(table, inputs)
