"""The table of a window store, in slices by time."""

from sluice.declare.graph import Graph
from sluice.declare.meaning.definition import definition
from sluice.declare.table import Table
from sluice.engine.planning.node import Node
from sluice.kinds.window_store.batch import StoreBatch
from sluice.kinds.window_store.operator import PART, WindowStoreRows
from sluice.kinds.window_store.upkeep import StoreKept


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    (source,) = graph.inputs(table.id)
    rows = WindowStoreRows(table, source)
    made, filed = definition(table), (PART,)
    return (
        Node(table.id, table, rows, made, StoreBatch, StoreKept, partition_by=filed, ignored=filed),
    )
