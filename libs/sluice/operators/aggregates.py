"""Aggregates as accumulators: what is kept of a stream's rows, and how a value is read from it.

Each aggregate of a stream has one argument column, a struct that is null for rows that don't count
(other streams' rows, rows that FILTER drops). Additive aggregates are sums over weighted rows, so
a retraction subtracts; the others need all rows of the group. Floating point is summed as DECIMAL
and rounded once, so that a result does not depend on order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    StructType,
)

from sluice.changelog.net import WEIGHT
from sluice.specs.expression import Aggregate, Expression, SortKey

ADDITIVE = frozenset({"count", "sum", "avg", "bool_or", "bool_and"})
COUNTS = frozenset({"count", "count_distinct", "approx_count_distinct"})
COLLECTIONS = frozenset({"collect_list", "collect_set"})
_EXACT = DecimalType(38, 18)
_FLOAT = "__float"


@dataclass(frozen=True)
class Accumulator:
    """One aggregate of one stream; `ties` are the input's key, which ends every order."""

    stream: str
    name: str
    aggregate: Aggregate
    ties: tuple[str, ...]

    @property
    def column(self) -> str:
        """The name of its argument column and of its state."""
        return f"{self.stream}__{self.name}"

    @property
    def is_additive(self) -> bool:
        """Whether a retraction can be subtracted."""
        return self.aggregate.function in ADDITIVE

    def argument(self) -> Column:
        """The struct (v, order keys, tie-break columns) of a row, null if the row doesn't count."""
        spec = self.aggregate
        value = F.expr(spec.argument.sql) if spec.argument else F.lit(1)
        order = [F.expr(k.expression.sql).alias(f"o{i}") for i, k in enumerate(spec.order_by)]
        ties = [F.col(f"`{c}`").alias(f"k{i}") for i, c in enumerate(self.used_ties)]
        struct = F.struct(value.alias("v"), *order, *ties)
        return (F.when(F.expr(spec.filter.sql), struct) if spec.filter else struct).alias(
            self.column
        )

    @property
    def expressions(self) -> list[Expression]:
        """Everything that it evaluates on a row."""
        spec = self.aggregate
        optional = [e for e in (spec.argument, spec.filter) if e]
        return [*optional, *(k.expression for k in spec.order_by)]

    @property
    def used_ties(self) -> tuple[str, ...]:
        """The key columns that it needs to break ties."""
        return self.ties if self.aggregate.order_by else ()

    def state(self, value_type: DataType, weighted: bool) -> list[Column]:
        """The aggregate expressions that make its state columns, from the argument column.

        `weighted`: rows carry a weight, which additive aggregates multiply by.
        """
        value = F.col(f"`{self.column}`").getField("v")
        if not self.is_additive:
            return [self._whole(value).alias(self.column)]
        weight = F.col(WEIGHT) if weighted else F.lit(1)
        counted = _sum(F.when(value.isNotNull(), weight), LongType())
        if self.aggregate.function == "count":
            return [counted.alias(self.column)]
        if self.aggregate.function in ("bool_or", "bool_and"):
            total = _sum(F.when(value, weight), LongType())
        else:
            summand = value.cast(_EXACT) if is_float(value_type) else value
            total = _sum(_times(summand, weight, weighted), sum_type(value_type))
        return [total.alias(self._total(value_type)), counted.alias(f"{self.column}__n")]

    def _total(self, value_type: DataType) -> str:
        return self.column + (_FLOAT if is_float(value_type) else "")

    def finish(self, state: StructType) -> Column:
        """The value, from the state columns of a table with the schema `state`."""
        counted = F.col(f"`{self.column}__n`")
        name = next(n for n in (self.column, self.column + _FLOAT) if n in state.names)
        total, as_float = F.col(f"`{name}`"), name.endswith(_FLOAT)
        match self.aggregate.function:
            case "sum":
                result = total.cast("double") if as_float else total
            case "avg":
                result = _average(total, counted, state[name].dataType, as_float)
            case "bool_or":
                result = total > 0
            case "bool_and":
                result = total == counted
            case _:
                return total
        return F.when(counted > 0, result)

    def _whole(self, value: Column) -> Column:
        match self.aggregate.function:
            case "first" | "last" | "collect_list":
                return self._ordered(value)
            case "count_distinct":
                return F.size(F.collect_set(value)).cast("bigint")
            case "collect_set":
                return F.array_sort(F.collect_set(value))
            case name:
                parameters = [F.lit(p) for p in self.aggregate.parameters]
                return F.call_function(name, value, *parameters)

    def _ordered(self, value: Column) -> Column:
        argument = F.col(f"`{self.column}`")
        if self.aggregate.function == "collect_list":
            kept = self._sorted(F.collect_list(F.when(value.isNotNull(), argument)))
            return F.transform(kept, lambda row: row.getField("v"))
        end = 1 if self.aggregate.function == "first" else -1
        return F.try_element_at(self._sorted(F.collect_list(argument)), F.lit(end))["v"]

    def _sorted(self, rows: Column) -> Column:
        ties = [(f"k{i}", False, True) for i in range(len(self.used_ties))]
        return F.array_sort(rows, lambda a, b: compare(a, b, [*_order(self.aggregate), *ties]))


def compare(a: Column, b: Column, order: Sequence[tuple[str, bool, bool]]) -> Column:
    """-1, 0 or 1 as struct `a` comes before, with or after `b`.

    `order`: (field, descending, nulls first), most significant first.
    """
    result = F.lit(0)
    for field, descending, nulls_first in reversed(order):
        x, y = a.getField(field), b.getField(field)
        sign = -1 if descending else 1
        of_null = -1 if nulls_first else 1
        differs = (
            F.when(x.isNull(), of_null)
            .when(y.isNull(), -of_null)
            .when(x < y, -sign)
            .otherwise(sign)
        )
        result = F.when(~x.eqNullSafe(y), differs).otherwise(result)
    return result


def is_float(value: DataType) -> bool:
    """Whether values of this type are approximate."""
    return isinstance(value, FloatType | DoubleType)


def sum_type(value: DataType) -> DataType:
    """The type in which values are summed: that of Spark's own sum, floats as DECIMAL(38,18)."""
    if is_float(value):
        return _EXACT
    if isinstance(value, DecimalType):
        return DecimalType(min(38, value.precision + 10), value.scale)
    return LongType()


def _sum(values: Column, total: DataType) -> Column:
    return F.coalesce(F.sum(values).cast(total), F.lit(0).cast(total))


def _times(value: Column, weight: Column, weighted: bool) -> Column:
    if not weighted:
        return value
    return F.when(weight == 1, value).when(weight == -1, -value).otherwise(value * weight)


def _average(total: Column, counted: Column, summed: DataType, as_float: bool) -> Column:
    if as_float:
        return (total / counted).cast("double")
    if isinstance(summed, DecimalType):
        precision = 38 if summed.precision == 38 else summed.precision - 6
        return (total / counted).cast(DecimalType(precision, min(38, summed.scale + 4)))
    return total.cast("double") / counted


def _order(aggregate: Aggregate) -> list[tuple[str, bool, bool]]:
    keys: Sequence[SortKey] = aggregate.order_by
    return [(f"o{i}", k.descending, k.nulls_first) for i, k in enumerate(keys)]
