"""Tables of a top-k: its state, and the visible view over it."""

from sluice.declare.graph import Graph
from sluice.declare.meaning.definition import definition
from sluice.declare.table import Table
from sluice.engine.committing.upkeep import Kept
from sluice.engine.computing.batch import Batch
from sluice.engine.planning.node import Node
from sluice.kinds.topk.batch import TopKBatch
from sluice.kinds.topk.operator import TopKState, TopKView
from sluice.language.internal import STATE, internal


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the top-k's stored tables, the state first."""
    (source,) = graph.inputs(table.id)
    state, state_id, made = TopKState(table, source), internal(table.id, STATE), definition(table)
    return (
        Node(state_id, table, state, made, TopKBatch, Kept),
        Node(table.id, table, TopKView(state, state_id), made, Batch, Kept),
    )
