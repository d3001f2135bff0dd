"""Its query, and the table that it is kept in."""

from pyspark.sql import DataFrame
from tests.kinds.throwaway import Above

from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table
from sluice.engine.batch import Batch
from sluice.engine.operator import InputRows, Operator
from sluice.engine.plan import Node
from sluice.engine.upkeep import Kept


class AboveRows(Operator):
    row_wise = mirror = True

    def __init__(self, view: Table, source: Table):
        assert isinstance(view.spec, Above)
        self.view, self.spec = view, view.spec
        self.inputs, self.key, self.group = (source.id,), view.key, view.key

    def columns(self, name: str) -> tuple[str, ...]:
        return tuple(self.view.columns)

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        return rows.where(f"`{self.spec.column}` >= {self.spec.least}")

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        (rows,) = prepared.values()
        return rows.select(*self.view.columns)


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    (source,) = graph.inputs(table.id)
    return (Node(table.id, table, AboveRows(table, source), definition(table), Batch, Kept),)
