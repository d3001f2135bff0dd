"""The table that is computed from a source's deliveries: for a key, or for changes."""

from sluice.operators.source import LatestOfKey, Multiset
from sluice.runtime.batch import Batch
from sluice.runtime.node import Node
from sluice.runtime.upkeep import Kept
from sluice.sources.spec import Source
from sluice.specs.definition import definition
from sluice.specs.graph import Graph
from sluice.specs.internal import DELIVERIES, internal
from sluice.specs.table import Table


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the source itself; nothing if its rows are stored as delivered."""
    spec = table.spec
    assert isinstance(spec, Source)
    if not spec.keeps_deliveries:
        return ()
    deliveries = internal(table.id, DELIVERIES)
    rows = LatestOfKey(table, deliveries) if spec.key else Multiset(table, deliveries)
    return (Node(table.id, table, rows, definition(table), Batch, Kept),)
