"""The table of a query that is computed whole; the others are kept by the kinds of their parts."""

from sluice.declare.definition import definition
from sluice.declare.graph import Graph
from sluice.declare.table import Table
from sluice.engine.committing.upkeep import Kept
from sluice.engine.planning.node import Node
from sluice.kinds.sql.whole import WholeBatch, WholeQuery


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    return (Node(table.id, table, WholeQuery(table), definition(table), WholeBatch, Kept),)
