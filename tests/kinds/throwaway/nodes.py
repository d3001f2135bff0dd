"""The table that it is kept in."""

from tests.kinds.throwaway.operator import AboveRows

from sluice.declare.graph import Graph
from sluice.declare.meaning.definition import definition
from sluice.declare.table import Table
from sluice.engine.committing.upkeep import Kept
from sluice.engine.computing.batch import Batch
from sluice.engine.planning.node import Node


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    (source,) = graph.inputs(table.id)
    return (Node(table.id, table, AboveRows(table, source), definition(table), Batch, Kept),)
