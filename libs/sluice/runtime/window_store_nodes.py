"""The table that a window store is kept in, in slices by time."""

from sluice.operators.window_store import PART, WindowStoreRows
from sluice.runtime.node import Node
from sluice.runtime.window_store_batch import WindowStoreBatch
from sluice.runtime.window_store_upkeep import StoreKept
from sluice.specs.definition import definition
from sluice.specs.graph import Graph
from sluice.specs.table import Table


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """The view itself."""
    (source,) = graph.inputs(table.id)
    rows = WindowStoreRows(table, source)
    moved, made = (PART,) if rows.is_gathered else (), definition(table)
    return (Node(table.id, table, rows, made, WindowStoreBatch, StoreKept, (PART,), moved),)
