"""The table that it is kept in."""

from tests.kinds.throwaway.operator import AboveRows

from sluice.runtime.batch import Batch
from sluice.runtime.node import Node
from sluice.runtime.upkeep import Kept
from sluice.specs.definition import definition
from sluice.specs.graph import Graph
from sluice.specs.table import Table


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    (source,) = graph.inputs(table.id)
    return (Node(table.id, table, AboveRows(table, source), definition(table), Batch, Kept),)
