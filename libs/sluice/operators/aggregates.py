"""Aggregates as accumulators: what is kept of a stream's rows, and how a value is read from it.

Each aggregate of a stream has one argument column, a struct that is null for rows that don't count
(other streams' rows, rows that FILTER drops). Additive aggregates are sums over weighted rows, so
a retraction subtracts; the others need all rows of the group. Names of the state's columns that
begin with an underscore can't meet a user's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DecimalType,
    LongType,
    StructType,
)

from sluice.changelog.net import WEIGHT
from sluice.operators import exact
from sluice.specs.expression import Aggregate, Expression, SortKey

ADDITIVE = frozenset({"count", "sum", "avg", "bool_or", "bool_and"})
COUNTS = frozenset({"count", "count_distinct", "approx_count_distinct"})
COLLECTIONS = frozenset({"collect_list", "collect_set"})


@dataclass(frozen=True)
class Accumulator:
    """One aggregate of one stream; `ties` are the input's key, which ends every order."""

    stream: str
    name: str
    aggregate: Aggregate
    ties: tuple[str, ...]

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
        return (F.when(F.expr(spec.filter.sql), struct) if spec.filter else struct).alias(self.name)

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
        value = F.col(f"`{self.name}`").getField("v")
        if not self.is_additive:
            return [self._whole(value).alias(self.name)]
        weight = F.col(WEIGHT) if weighted else F.lit(1)

        def count(condition: Column) -> Column:
            return _sum(F.when(condition, weight), LongType())

        def total(number: Column) -> Column:
            return _sum(_times(number, weight, weighted), sum_type(value_type))

        counted = count(value.isNotNull())
        if self.aggregate.function == "count":
            return [counted.alias(self.name)]
        if self.aggregate.function in ("bool_or", "bool_and"):
            parts = [count(value).alias(self.name)]
        elif exact.is_float(value_type):
            parts = exact.columns_of(self.name, value, total, count)
        else:
            parts = [total(value).alias(self.name)]
        return [*parts, counted.alias(self._counted)]

    @property
    def _counted(self) -> str:
        return f"_n_{self.name}"

    def finish(self, state: StructType) -> Column:
        """The value, from the state columns of a table with the schema `state`."""
        if self._counted not in state.names:
            return F.col(f"`{self.name}`")
        counted = F.col(f"`{self._counted}`")
        if self.name not in state.names:
            mean = self.aggregate.function == "avg"
            result = exact.read(
                self.name, lambda total: (total / counted if mean else total).cast("double")
            )
        else:
            result = self._finished(F.col(f"`{self.name}`"), counted, state)
        return F.when(counted > 0, result)

    def _finished(self, total: Column, counted: Column, state: StructType) -> Column:
        match self.aggregate.function:
            case "avg":
                return _average(total, counted, state[self.name].dataType)
            case "bool_or":
                return total > 0
            case "bool_and":
                return total == counted
            case _:
                return total

    def _whole(self, value: Column) -> Column:
        match self.aggregate.function:
            case "first" | "last" | "collect_list":
                return self._ordered(value)
            case "count_distinct":
                return F.size(F.collect_set(value)).cast("bigint")
            case "collect_set":
                return F.array_sort(F.collect_set(value))
            case name:
                parameters = [_literal(p) for p in self.aggregate.parameters]
                return F.call_function(name, value, *parameters)

    def _ordered(self, value: Column) -> Column:
        argument = F.col(f"`{self.name}`")
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


def sum_type(value: DataType) -> DataType:
    """The type in which values are summed: that of Spark's own sum, floats as DECIMAL(38,18)."""
    if exact.is_float(value):
        return exact.EXACT
    if isinstance(value, DecimalType):
        return DecimalType(min(38, value.precision + 10), value.scale)
    return LongType()


def _sum(values: Column, total: DataType) -> Column:
    return F.coalesce(F.sum(values).cast(total), F.lit(0).cast(total))


def _times(value: Column, weight: Column, weighted: bool) -> Column:
    if not weighted:
        return value
    return F.when(weight == 1, value).when(weight == -1, -value).otherwise(value * weight)


def _average(total: Column, counted: Column, summed: DataType) -> Column:
    if isinstance(summed, DecimalType):
        precision = 38 if summed.precision == 38 else summed.precision - 6
        return (total / counted).cast(DecimalType(precision, min(38, summed.scale + 4)))
    return total.cast("double") / counted


def _literal(value: object) -> Column:
    return F.array(*map(_literal, value)) if isinstance(value, tuple) else F.lit(value)


def _order(aggregate: Aggregate) -> list[tuple[str, bool, bool]]:
    keys: Sequence[SortKey] = aggregate.order_by
    return [(f"o{i}", k.descending, k.nulls_first) for i, k in enumerate(keys)]
