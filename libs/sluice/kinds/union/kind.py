"""All that others ask of a union."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluice.declare.kind import Kind
from sluice.kinds.union.spec import Union

if TYPE_CHECKING:
    from sluice.declare.graph import Graph
    from sluice.declare.meaning.column_lineage import MadeFrom
    from sluice.declare.resolution.scope import TableMistakes
    from sluice.declare.table import Table
    from sluice.declare.text.document import Where
    from sluice.engine.planning.node import Node


class UnionKind(Kind):
    """`Union` as a kind of table."""

    model = Union

    def resolve(self, spec: Union, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
        from sluice.kinds.union.resolve import resolve

        return resolve(spec, inputs, mistakes)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.union.nodes import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        from sluice.kinds.union.columns import columns

        return columns(table, inputs)
