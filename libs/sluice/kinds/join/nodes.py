"""The table of a join."""

from sluice.declare.graph import Graph
from sluice.declare.meaning.definition import definition
from sluice.declare.table import Table
from sluice.engine.committing.upkeep import Kept
from sluice.engine.planning.node import Node
from sluice.kinds.join.batch import JoinBatch
from sluice.kinds.join.operator import JoinedRows
from sluice.kinds.join.spec import EquiJoin


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    spec = table.spec
    assert isinstance(spec, EquiJoin)
    left, right = (graph.tables[table.reference(s.table)] for s in (spec.left, spec.right))
    return (
        Node(table.id, table, JoinedRows(table, left, right), definition(table), JoinBatch, Kept),
    )
