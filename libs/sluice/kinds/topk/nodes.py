"""Tables of a top-k: its state, and the visible view over it."""

from sluice.operators.topk import TopKState, TopKView
from sluice.runtime.batch import Batch
from sluice.runtime.node import Node
from sluice.runtime.topk_batch import TopKBatch
from sluice.runtime.upkeep import Kept
from sluice.specs.definition import definition
from sluice.specs.graph import Graph
from sluice.specs.internal import STATE, internal
from sluice.specs.table import Table


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the top-k's stored tables, the state first."""
    (source,) = graph.inputs(table.id)
    state, state_id, made = TopKState(table, source), internal(table.id, STATE), definition(table)
    return (
        Node(state_id, table, state, made, TopKBatch, Kept),
        Node(table.id, table, TopKView(state, state_id), made, Batch, Kept),
    )
