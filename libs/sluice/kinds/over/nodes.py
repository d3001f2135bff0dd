"""The table of a view with window functions."""

from sluice.declare.graph import Graph
from sluice.declare.meaning.definition import definition
from sluice.declare.table import Table
from sluice.engine.committing.upkeep import Kept
from sluice.engine.computing.batch import Batch
from sluice.engine.planning.node import Node
from sluice.kinds.over.operator import OverRows


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    (source,) = graph.inputs(table.id)
    return (Node(table.id, table, OverRows(table, source), definition(table), Batch, Kept),)
