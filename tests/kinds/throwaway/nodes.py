"""The table that it is kept in."""

from tests.kinds.throwaway.operator import AboveRows

from sluice.declare.definition import definition
from sluice.declare.graph import Graph
from sluice.declare.table import Table
from sluice.engine.batch import Batch
from sluice.engine.node import Node
from sluice.engine.upkeep import Kept


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    (source,) = graph.inputs(table.id)
    return (Node(table.id, table, AboveRows(table, source), definition(table), Batch, Kept),)
