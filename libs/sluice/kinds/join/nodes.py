"""The table of a join."""

from sluice.declare.definition import definition
from sluice.declare.graph import Graph
from sluice.declare.table import Table
from sluice.engine.batch import Batch
from sluice.engine.node import Node
from sluice.engine.upkeep import Kept
from sluice.kinds.join.operator import JoinedRows
from sluice.kinds.join.spec import EquiJoin


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    spec = table.spec
    assert isinstance(spec, EquiJoin)
    left, right = (graph.tables[table.reference(s.table)] for s in (spec.left, spec.right))
    return (Node(table.id, table, JoinedRows(table, left, right), definition(table), Batch, Kept),)
