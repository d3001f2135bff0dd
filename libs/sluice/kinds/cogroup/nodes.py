"""Tables of a cogroup: its state, and the visible view over it."""

from sluice.declare.graph import Graph
from sluice.declare.meaning.definition import definition
from sluice.declare.table import Table
from sluice.engine.committing.upkeep import Kept
from sluice.engine.computing.batch import Batch
from sluice.engine.planning.node import Node
from sluice.kinds.cogroup.batch import CogroupBatch
from sluice.kinds.cogroup.operator import CogroupState
from sluice.kinds.cogroup.parts import definition_by_part
from sluice.kinds.cogroup.spec import Cogroup
from sluice.kinds.cogroup.view import CogroupView
from sluice.language.internal import STATE, internal


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the cogroup's stored tables, the state first."""
    spec = table.spec
    assert isinstance(spec, Cogroup)
    inputs = {input_.id: input_ for input_ in graph.inputs(table.id)}
    streams = {name: table.reference(stream.from_) for name, stream in spec.streams.items()}
    state, state_id = CogroupState(table, inputs, streams), internal(table.id, STATE)
    made = definition(table)
    parts = definition_by_part(table, spec, {i: t.key for i, t in inputs.items()})
    return (
        Node(state_id, table, state, made, CogroupBatch, Kept, parts=parts),
        Node(table.id, table, CogroupView(state, state_id), made, Batch, Kept),
    )
