"""The tables that a declared table is kept in, each with the operator that maintains it.

A cogroup and a top-k are kept in a state and a visible view; a source with a key in its deliveries
and its latest rows. Each is a Delta table with a position of its own, advanced by the same step.
"""

from sluice.runtime.node import Node
from sluice.runtime.roles import part
from sluice.specs.graph import Graph
from sluice.specs.table import Table


def nodes_of(table: Table, graph: Graph) -> tuple[Node, ...]:
    """The nodes of a table in the order in which they advance; none for what isn't maintained."""
    module = part(table.kind, "nodes")
    found: tuple[Node, ...] = module.nodes(table, graph) if module else ()
    return found
