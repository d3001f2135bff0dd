"""The table of a union."""

from sluice.declare.graph import Graph
from sluice.declare.meaning.definition import definition
from sluice.declare.table import Table
from sluice.engine.committing.upkeep import Kept
from sluice.engine.computing.batch import Batch
from sluice.engine.planning.node import Node
from sluice.kinds.union.operator import UnionRows


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    tables = {source.id: source for source in graph.inputs(table.id)}
    return (Node(table.id, table, UnionRows(table, tables), definition(table), Batch, Kept),)
