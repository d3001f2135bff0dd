"""The table that is computed from a source's deliveries: for a key, or for changes."""

from sluice.declare.graph import Graph
from sluice.declare.meaning.definition import definition
from sluice.declare.table import Table
from sluice.engine.committing.upkeep import Kept
from sluice.engine.computing.batch import Batch
from sluice.engine.planning.node import Node
from sluice.language.internal import DELIVERIES, internal
from sluice.sources.operator import LatestOfKey, Multiset
from sluice.sources.spec import Source


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the source itself; nothing if its rows are stored as delivered."""
    spec = table.spec
    assert isinstance(spec, Source)
    if not spec.keeps_deliveries:
        return ()
    deliveries = internal(table.id, DELIVERIES)
    rows = LatestOfKey(table, deliveries) if spec.key else Multiset(table, deliveries)
    return (Node(table.id, table, rows, definition(table), Batch, Kept),)
