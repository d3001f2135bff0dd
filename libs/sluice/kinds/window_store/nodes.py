"""The table of a window store, in slices by time."""

from sluice.operators.window_store import PART, WindowStoreRows
from sluice.runtime.batch import Batch
from sluice.runtime.node import Node
from sluice.runtime.window_store_upkeep import StoreKept
from sluice.specs.definition import definition
from sluice.specs.graph import Graph
from sluice.specs.table import Table


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    (source,) = graph.inputs(table.id)
    rows = WindowStoreRows(table, source)
    return (Node(table.id, table, rows, definition(table), Batch, StoreKept, (PART,)),)
