"""The stored tables of a declared table, each with the operator and the batches that maintain it.

Some views are kept in a state and a visible table; a source with a key in its deliveries and its
latest rows. Each is a Delta table with a position of its own, advanced by the same step.
"""

from typing import Protocol, cast

from sluice.runtime.node import Node
from sluice.specs.graph import Graph
from sluice.specs.registry import kind
from sluice.specs.table import Table


class Maker(Protocol):
    """A module `nodes` of a kind."""

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        """The nodes of a table of that kind."""
        ...


def nodes_of(table: Table, graph: Graph) -> tuple[Node, ...]:
    """The nodes of a table in the order in which they advance; none for what isn't maintained."""
    maker = cast(Maker | None, kind(table.kind).part("nodes"))
    return maker.nodes(table, graph) if maker else ()
