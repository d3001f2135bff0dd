"""Over: SQL's window functions, by partition.

A change touches the partitions that contain or contained its rows. Each is recomputed whole and
compared; unchanged rows are not written. The input's key breaks ties where they must be ordered, so
that two runs agree.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table, carried_columns
from sluice.engine.committing import Kept
from sluice.engine.computing.batch import Batch
from sluice.engine.planning.nodes import Node
from sluice.engine.query.operator import InputRows, Operator, names, passed_on
from sluice.kinds.over.spec import BY, ROWS_OF_FRAME, SO_FAR, SUMS, WHOLE, Over, WindowCall

ALL = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


class OverRows(Operator):
    """The input's rows, with columns that read the rows of their partition."""

    def __init__(self, view: Table, source: Table):
        assert isinstance(view.spec, Over)
        self.view, self.source, self.spec = view, source, view.spec
        self.inputs = (source.id,)
        self.group = tuple(f"{BY}{i}" for i in range(len(self.spec.partition_by)))
        self.key = view.key
        self._carried = carried_columns(view, source)

    @property
    def totals(self) -> tuple[str, ...]:
        calls = (call for one in self.spec.select.values() for call in one.calls)
        return tuple(call.sql for call in calls if call.function in SUMS)

    def columns(self, name: str) -> tuple[str, ...]:
        calls = {call.name for one in self.spec.select.values() for call in one.calls}
        used = {*self.source.key}
        expressions = [*self.spec.partition_by, *(key.expression for key in self.spec.order_by)]
        expressions += [self.spec.where] if self.spec.where else []
        for one in self.spec.select.values():
            expressions += [one.expression, *one.read]
        for expression in expressions:
            used |= expression.reads(self.source.columns)
        return tuple(sorted(used - calls))

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        pairs = zip(self.group, self.spec.partition_by, strict=True)
        known = {e.plain_column: c for c, e in pairs if e.plain_column}
        return [known] if known else ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        met = rows.where(self.spec.where.sql) if self.spec.where else rows
        used = self.columns(name)
        by = [
            F.expr(e.sql).alias(c) for c, e in zip(self.group, self.spec.partition_by, strict=True)
        ]
        return met.select(*names(used), *by, *names(tuple(passed_on(rows, used))))

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        calls = {call.name: call for one in self.spec.select.values() for call in one.calls}
        over = [f"{call.sql} OVER ({self._window(call)}) AS {n}" for n, call in calls.items()]
        rows = prepared[self.source.id].selectExpr("*", *over)
        shown = {name: F.expr(one.expression.sql) for name, one in self.spec.select.items()}
        hidden = {out: F.col(f"`{c}`") for out, c in self._carried.items() if out not in shown}
        every = {**shown, **hidden, **{c: F.col(c) for c in self.group}}
        return rows.select(*[column.alias(name) for name, column in every.items()])

    def _window(self, call: WindowCall) -> str:
        by = f"PARTITION BY {', '.join(self.group)} " if self.group else ""
        order = [key.sql for key in self.spec.order_by]
        if call.is_by_place:
            order += [f"`{column}`" for column in self.source.key]
        default = SO_FAR if call.function in ROWS_OF_FRAME else ""
        frame = ALL if call.window == WHOLE else call.frame or default
        return f"{by}ORDER BY {', '.join(order)} {frame}"


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    (source,) = graph.inputs(table.id)
    return (Node(table.id, table, OverRows(table, source), definition(table), Batch, Kept),)
