"""State of an aggregate for a group, to which added and removed rows are applied.

An accumulator sees a stream's rows as one argument column: a struct, null for rows that don't count
(other streams' rows, rows that FILTER drops). `gather` turns weighted rows into their contribution,
in one aggregation. `settle` turns an old state and a contribution into the new state. A whole group
is gathered with weights of one and settled on nothing, so recomputing and merging share one code
and can't disagree. The state is null if nothing counts: it does not show the group's past. A
removal that the state can't apply, mostly of a kept extreme, breaks the group: it must be
recomputed from the inputs.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from sluice.language.expression import Aggregate, Expression

LISTED = 8  # weight of an aggregate that keeps values one by one


@dataclass(frozen=True)
class Accumulator(ABC):
    """One aggregate of one stream; `ties` are the input's key, which ends every order.

    `can_break`: it can't apply some removals. `is_approximate`: the state may depend on the order
    of arrival. `can_overflow`: it adds values up, and the total may exceed their sum's type.
    `weight`: how many times the memory and time of a sum it takes without Spark.
    """

    stream: str
    name: str
    aggregate: Aggregate
    ties: tuple[str, ...]

    can_break: ClassVar[bool] = False
    is_approximate: ClassVar[bool] = False
    can_overflow: ClassVar[bool] = False
    weight: ClassVar[int] = 1

    def argument(self) -> Column:
        """Return a row's struct (order keys, tie-break columns, v), null if it doesn't count."""
        spec = self.aggregate
        value = F.expr(spec.argument.sql) if spec.argument else F.lit(1)
        order = [F.expr(k.expression.sql).alias(f"o{i}") for i, k in enumerate(spec.order_by)]
        ties = [F.col(f"`{c}`").alias(f"k{i}") for i, c in enumerate(self.used_ties)]
        struct = F.struct(*order, *ties, value.alias("v"))
        return (F.when(F.expr(spec.filter.sql), struct) if spec.filter else struct).alias(self.name)

    @property
    def expressions(self) -> list[Expression]:
        """All expressions that it evaluates on a row."""
        spec = self.aggregate
        optional = [e for e in (spec.argument, spec.filter) if e]
        return [*optional, *(k.expression for k in spec.order_by)]

    @property
    def used_ties(self) -> tuple[str, ...]:
        """Key columns that it needs to break ties."""
        return self.ties if self.aggregate.order_by else ()

    @property
    def meaning(self) -> tuple[object, ...]:
        """The parts of `argument`: if they are the same, so are the values."""
        spec = self.aggregate
        return (spec.argument, spec.order_by, spec.filter, self.used_ties)

    @property
    def row(self) -> Column:
        """The argument column of prepared rows."""
        return F.col(f"`{self.name}`")

    @property
    def value(self) -> Column:
        """The value of a prepared row that is aggregated."""
        return self.row.getField("v")

    def takes_one_by_one(self, value: DataType) -> bool:
        """True if equal rows must arrive as separate rows, of weight 1 or -1."""
        return False

    @abstractmethod
    def gather(self, weight: Column, value: DataType) -> Column:
        """Return an aggregate expression: what rows with values of type `value` contribute."""

    def merge(self, was: Column, delta: Column, kept: DataType) -> tuple[Column | None, Column]:
        """Return aggregate expressions over at most one row with `was` and one with `delta`.

        They have old state and contribution side by side, or both already in one contribution.
        `kept` is the type of a contribution, here and below.
        """
        return F.first(was, ignorenulls=True), F.first(delta, ignorenulls=True)

    @abstractmethod
    def settle(self, was: Column | None, delta: Column, kept: DataType) -> Column:
        """Return the new state."""

    def breaks(self, was: Column, delta: Column) -> Column:
        """True if the contribution can't be settled on the old state. Never null."""
        return F.lit(False)

    def agrees(self, a: Column, b: Column, kept: DataType) -> Column:
        """True if two states may come from the same rows. Never null."""
        return a.eqNullSafe(b)

    @abstractmethod
    def finish(self, state: Column, kept: DataType) -> Column:
        """Return the visible value; `state` is of the type `kept`, null without rows."""
