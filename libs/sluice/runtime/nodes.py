"""The tables that a declared table is kept in, each with the operator that maintains it.

A cogroup and a top-k are kept in a state and a visible view; a source with a key in its deliveries
and its latest rows. Each is a Delta table with a position of its own, advanced by the same step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluice.operators.cogroup import CogroupState
from sluice.operators.cogroup_view import CogroupView
from sluice.operators.lookup import BUCKET, LookupJoin
from sluice.operators.operator import Operator
from sluice.operators.source import LatestOfKey, Multiset
from sluice.operators.topk import TopKState, TopKView
from sluice.operators.window_store import PART, WindowStoreRows
from sluice.specs.cogroup import Cogroup
from sluice.specs.definition import definition, definition_by_part
from sluice.specs.graph import Graph
from sluice.specs.lookup import Lookup
from sluice.specs.quality import Expectation
from sluice.specs.source import Source
from sluice.specs.table import Table
from sluice.specs.topk import TopK
from sluice.specs.window_store import WindowStore
from sluice.storage.filing import slice_numbers
from sluice.storage.position import Head

STATE, DELIVERIES = "state", "deliveries"


@dataclass(frozen=True)
class Node:
    """One Delta table that batches maintain. `ignored`: columns that don't make a row differ.

    `parts`: fingerprints of the parts of its definition, where they can be told apart.
    """

    id: str
    table: Table
    operator: Operator
    definition: str
    partition_by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """What its rows are held against: a view's own table only, sources have their gate."""
        is_visible = self.table.is_view and self.id == self.table.id
        return self.table.spec.expect if is_visible else ()  # type: ignore[union-attr]


def nodes_of(table: Table, graph: Graph) -> tuple[Node, ...]:
    """The nodes of a table in the order in which they advance; none for what isn't maintained."""
    tables = {i: graph.tables[i] for i in table.inputs}
    made = definition(table)
    match table.spec:
        case TopK():
            return _topk(table, tables[table.inputs[0]], made)
        case Cogroup() as spec:
            return _cogroup(table, spec, tables, made)
        case Lookup() as spec:
            return (_lookup(table, spec, graph, made),)
        case WindowStore():
            rows = WindowStoreRows(table, tables[table.inputs[0]])
            moved = (PART,) if rows.is_gathered else ()
            return (Node(table.id, table, rows, made, partition_by=(PART,), ignored=moved),)
        case Source() as spec if spec.key or spec.change:
            deliveries = internal(table.id, DELIVERIES)
            latest = LatestOfKey(table, deliveries) if spec.key else Multiset(table, deliveries)
            return (Node(table.id, table, latest, made),)
        case _:
            return ()


def as_filed(node: Node, at: Head | None) -> Node:
    """The node, whose new rows go to the slices that its table has at that head."""
    store = node.operator
    if at is None or not isinstance(store, WindowStoreRows) or not store.is_gathered:
        return node
    numbers = slice_numbers(at.uri, at.version)
    longer = (n for n in numbers if len(str(n)) < store.grain.digits)
    return replace(node, operator=store.filed_in(longer))


def internal(table_id: str, suffix: str) -> str:
    """The id of a table that Sluice keeps for itself."""
    return f"{table_id}__{suffix}"


def _topk(table: Table, source: Table, made: str) -> tuple[Node, ...]:
    state = TopKState(table, source)
    state_id = internal(table.id, STATE)
    return (
        Node(state_id, table, state, made),
        Node(table.id, table, TopKView(state, state_id), made),
    )


def _cogroup(
    table: Table, spec: Cogroup, tables: Mapping[str, Table], made: str
) -> tuple[Node, ...]:
    streams = {n: _input_id(table, s.from_) for n, s in spec.streams.items()}
    state = CogroupState(table, tables, streams)
    state_id = internal(table.id, STATE)
    parts = definition_by_part(table, spec, {i: t.key for i, t in tables.items()})
    return (
        Node(state_id, table, state, made, parts=parts),
        Node(table.id, table, CogroupView(state, state_id), made),
    )


def _lookup(table: Table, spec: Lookup, graph: Graph, made: str) -> Node:
    facts = graph.tables[_input_id(table, spec.from_)]
    dimensions = {j.dimension: graph.tables[_input_id(table, j.dimension)] for j in spec.join}
    join = LookupJoin(table, facts, dimensions)
    ignored = () if join.follows_dimensions else ("_sluice_batch",)
    filed = (BUCKET,) if join.follows_dimensions else ()
    return Node(table.id, table, join, made, partition_by=filed, ignored=ignored)


def _input_id(table: Table, name: str) -> str:
    return name if "." in name else f"{table.pipeline}.{name}"
