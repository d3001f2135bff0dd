"""Stored tables of a declared table, each with its operator and batches.

Some views consist of a state and a visible table. A source with a key consists of its deliveries
and its latest rows. Each is a Delta table with its own position, advanced by the same step.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from sluice.declare.registry import kind
from sluice.declare.table import Graph, Table
from sluice.engine.committing import Kept
from sluice.engine.computing.batch import Batch
from sluice.engine.query.operator import Maintained, Operator


@dataclass(frozen=True)
class Node(Maintained):
    """Maintained table. `batch` plans, computes and proves its rows; `kept` keeps its files."""

    batch: type[Batch[Operator]]
    kept: type[Kept]


@runtime_checkable
class Maker(Protocol):
    """Kind whose tables are maintained."""

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        """Return the nodes of a table of that kind."""
        ...


def nodes_of(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return a table's nodes in the order in which they advance; none if it isn't maintained."""
    if table.parts:
        whole = Graph({**graph.tables, **{part.id: part for part in table.parts}})
        return tuple(node for part in table.parts for node in nodes_of(part, whole))
    maker = kind(table.kind)
    return maker.nodes(table, graph) if isinstance(maker, Maker) else ()
