"""Upkeep of a pipeline's tables, the internal ones behind them included."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sluice.runtime.nodes import DELIVERIES, internal, nodes_of
from sluice.specs.graph import Graph
from sluice.specs.project import Project
from sluice.specs.table import Table
from sluice.storage.lake import layout
from sluice.storage.maintenance import compact


@dataclass(frozen=True)
class Upkeep:
    """What was done to one table: files that were put together."""

    table: str
    files: int


def maintain(project: Project, tables: Iterable[Table]) -> list[Upkeep]:
    """Compact what has many small files. Changes no row and needs no Spark."""
    lake = layout(project)
    ids = [i for table in tables for i in kept_in(table, project.graph)]
    done = [Upkeep(table_id, compact(lake.uri(table_id))) for table_id in ids]
    return [upkeep for upkeep in done if upkeep.files]


def kept_in(table: Table, graph: Graph) -> Iterator[str]:
    """The Delta tables that hold a table's rows."""
    if not table.is_stored:
        return
    yield from dict.fromkeys([table.id, *(node.id for node in nodes_of(table, graph))])
    if table.kind == "source" and nodes_of(table, graph):
        yield internal(table.id, DELIVERIES)
