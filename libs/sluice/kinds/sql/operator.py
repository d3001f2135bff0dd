"""Table of a query that no chain of views can keep: computed whole, its difference committed.

Other queries are kept by the kinds of their parts.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window
from sqlglot import exp

from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table
from sluice.delta.places.lake_layout import LakeLayout
from sluice.engine.batch import Batch
from sluice.engine.batch_plan import BatchPlan, Strategy, Way
from sluice.engine.operator import InputRows, Operator, names
from sluice.engine.plan import Node
from sluice.engine.upkeep import Kept
from sluice.kinds.sql import NTH, Sql
from sluice.language import syntax


class WholeQuery(Operator):
    """The query's rows; equal ones are numbered. All rows are one group."""

    group = ()

    def __init__(self, view: Table):
        assert isinstance(view.spec, Sql)
        self.view, self.spec = view, view.spec
        self.inputs = view.inputs
        self.key = view.key
        self.untraced = f"every batch computes its whole query, because of {self.spec.refusal}"

    def columns(self, name: str) -> tuple[str, ...]:
        return ()

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        tree = self.spec.query.tree.copy()
        for table in tree.find_all(exp.Table):
            if table.db:
                rows = prepared[f"{table.db}.{table.name}"]
                name = f"_sluice_{self.view.pipeline}__{self.view.name}__{table.db}__{table.name}"
                rows.createOrReplaceTempView(name)
                table.set("this", exp.to_identifier(name))
                table.set("db", None)
        session = next(iter(prepared.values())).sparkSession
        found = session.sql(syntax.render(tree)).toDF(*self.view.columns)
        shown = names(tuple(self.view.columns))
        equal = Window.partitionBy(*shown).orderBy(*shown)
        return found.select(*shown, F.row_number().over(equal).alias(NTH))


class WholeBatch(Batch[Operator]):
    """Batch that computes everything."""

    @classmethod
    def way(cls, plan: BatchPlan, lake: LakeLayout) -> Way:
        operator = plan.node.operator
        assert isinstance(operator, WholeQuery)
        return Strategy.RECOMPUTE, f"the whole query, because of {operator.spec.refusal}"


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    return (Node(table.id, table, WholeQuery(table), definition(table), WholeBatch, Kept),)
