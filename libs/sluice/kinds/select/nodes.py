"""The table of a select."""

from sluice.declare.graph import Graph
from sluice.declare.meaning.definition import definition
from sluice.declare.table import Table
from sluice.engine.committing.upkeep import Kept
from sluice.engine.computing.batch import Batch
from sluice.engine.planning.node import Node
from sluice.kinds.select.operator import SelectedRows


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    (source,) = graph.inputs(table.id)
    return (Node(table.id, table, SelectedRows(table, source), definition(table), Batch, Kept),)
