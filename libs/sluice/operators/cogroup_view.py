"""The visible rows of a cogroup: each a function of one row of its state."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sluice.operators.accumulator import Accumulator
from sluice.operators.cogroup import CogroupState, has_rows
from sluice.operators.operator import Operator, Rows, names


class CogroupView(Operator):
    """The visible columns, from one state row each."""

    row_wise = True
    mirror = True

    def __init__(self, state: CogroupState, state_id: str):
        self.state = state
        self.inputs = (state_id,)
        self.key = state.key
        self.group = state.group

    def columns(self, name: str) -> tuple[str, ...]:
        return ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        return rows

    def combine(self, prepared: Rows, references: Rows) -> DataFrame:
        rows = prepared[self.inputs[0]]
        values = [self._value(a, rows.schema).alias(a.name) for a in self.state.accumulators]
        visible = rows.select(*names(self.state.by), *values)
        selected = self.state.spec.select
        if selected is None:
            return visible
        return visible.select(
            *names(self.state.by), *[F.expr(e.sql).alias(n) for n, e in selected.items()]
        )

    def _value(self, accumulator: Accumulator, state: StructType) -> Column:
        value = accumulator.finish(F.col(f"`{accumulator.name}`"), state[accumulator.name].dataType)
        stream = accumulator.stream
        given = self.state.spec.streams[stream].initial
        initial = given.get(accumulator.name, accumulator.empty)
        if initial is None:
            return value
        empty = F.array() if initial == [] else F.lit(initial)
        return F.when(has_rows(accumulator), value).otherwise(empty)
