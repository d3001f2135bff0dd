"""The table of a lookup."""

from sluice.declare.graph import Graph
from sluice.declare.meaning.definition import definition
from sluice.declare.table import Table
from sluice.engine.committing.upkeep import Kept
from sluice.engine.planning.node import Node
from sluice.kinds.lookup.batch import LookupBatch
from sluice.kinds.lookup.operator import BUCKET, LookupJoin
from sluice.kinds.lookup.spec import Lookup
from sluice.language.hidden_columns import BATCH


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself, in buckets by its join columns if dimensions' changes correct it."""
    spec, tables = table.spec, graph.tables
    assert isinstance(spec, Lookup)
    dimensions = {j.dimension: tables[table.reference(j.dimension)] for j in spec.join}
    join = LookupJoin(table, tables[table.reference(spec.from_)], dimensions)
    ignored = () if join.follows_references else (BATCH,)
    filed = (BUCKET,) if join.follows_references else ()
    made = definition(table)
    return (
        Node(table.id, table, join, made, LookupBatch, Kept, partition_by=filed, ignored=ignored),
    )
