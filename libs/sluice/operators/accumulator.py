"""What every aggregate keeps of a group: a state that takes in what came and what went.

An accumulator sees a stream's rows as one argument column, a struct that is null for rows that
don't count (other streams' rows, rows that FILTER drops). `gather` makes of weighted rows what they
contribute, in one aggregation; `settle` makes of an old state and a contribution the new state.
A whole group is gathered with weights of one and settled on nothing, so recomputing and merging are
one code and can't disagree. The state is null where nothing counts: it does not tell how the group
came to be what it is. What a state can't take in, mostly that a kept extreme went, breaks the
group: it is to be recomputed from the inputs.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from sluice.specs.expression import Aggregate, Expression


@dataclass(frozen=True)
class Accumulator(ABC):
    """One aggregate of one stream; `ties` are the input's key, which ends every order.

    `can_break`: some removals can't be taken in. `is_approximate`: the state may depend on the
    order of what came. `can_overflow`: it adds values up, to more than their sum's type may hold.
    """

    stream: str
    name: str
    aggregate: Aggregate
    ties: tuple[str, ...]

    can_break: ClassVar[bool] = False
    is_approximate: ClassVar[bool] = False
    can_overflow: ClassVar[bool] = False

    def argument(self) -> Column:
        """The struct (order keys, tie-break columns, v) of a row, null if the row doesn't count."""
        spec = self.aggregate
        value = F.expr(spec.argument.sql) if spec.argument else F.lit(1)
        order = [F.expr(k.expression.sql).alias(f"o{i}") for i, k in enumerate(spec.order_by)]
        ties = [F.col(f"`{c}`").alias(f"k{i}") for i, c in enumerate(self.used_ties)]
        struct = F.struct(*order, *ties, value.alias("v"))
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

    @property
    def meaning(self) -> tuple[object, ...]:
        """What `argument` is made of: where it is the same, so are the values."""
        spec = self.aggregate
        return (spec.argument, spec.order_by, spec.filter, self.used_ties)

    @property
    def row(self) -> Column:
        """The argument column of prepared rows."""
        return F.col(f"`{self.name}`")

    @property
    def value(self) -> Column:
        """What is aggregated of a prepared row."""
        return self.row.getField("v")

    def takes_one_by_one(self, value: DataType) -> bool:
        """Whether equal rows have to come as so many rows, of weight 1 or -1."""
        return False

    @abstractmethod
    def gather(self, weight: Column, value: DataType) -> Column:
        """An aggregate expression: what rows contribute. `value` is the type of what they hold."""

    def merge(self, was: Column, delta: Column, kept: DataType) -> tuple[Column | None, Column]:
        """Aggregate expressions over at most one row with `was` and at most one with `delta`.

        They give old state and contribution side by side, or the two already in one contribution.
        `kept` is the type of a contribution, here and below.
        """
        return F.first(was, ignorenulls=True), F.first(delta, ignorenulls=True)

    @abstractmethod
    def settle(self, was: Column | None, delta: Column, kept: DataType) -> Column:
        """The new state."""

    def breaks(self, was: Column, delta: Column) -> Column:
        """Whether the contribution can't be settled on the old state. Never null."""
        return F.lit(False)

    def agrees(self, a: Column, b: Column, kept: DataType) -> Column:
        """Whether two states may be of the same rows. Never null."""
        return a.eqNullSafe(b)

    @abstractmethod
    def finish(self, state: Column, kept: DataType) -> Column:
        """The value that readers see, of a state of the type `kept`, which is null of no rows."""
