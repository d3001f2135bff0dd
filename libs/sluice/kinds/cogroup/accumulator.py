"""State of an aggregate for a group, to which added and removed rows are applied.

An accumulator sees a stream's rows as one argument column: a struct, null for rows that don't count
(other streams' rows, rows that FILTER drops). `gather` turns weighted rows into their contribution,
in one aggregation. `settle` turns an old state and a contribution into the new state. A whole group
is gathered with weights of one and settled on nothing, so recomputing and merging share one code
and can't disagree. The state is null if nothing counts: it does not show the group's past. A
removal that the state can't apply, mostly of a kept extreme, breaks the group: it must be
recomputed from the inputs.

Arrays are small ordered collections: bags of counted values, lists in a declared order. Cost: each
of their functions works within a row, in the time of sorting an array that is mostly sorted.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

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


ElementOrder = Sequence[
    tuple[str, bool, bool]
]  # field, descending, nulls first; most significant first
KEPT, GONE, CAME = 0, 1, 2
FEW = 32  # structs that are compared with each one of a bag


def let(value: Column, body: Callable[[Column], Column]) -> Column:
    """Return `body` of `value`, which is computed once however often `body` uses it."""
    return F.get(F.transform(F.array(value), body), F.lit(0))


def joined(*arrays: Column) -> Column:
    """Return all elements of arrays, some of which may be null."""
    return F.flatten(F.array_compact(F.array(*arrays)))


def bag(counted: Column) -> Column:
    """Merge structs (v, n): each v once, in order, with the sum of its n unless that is zero."""
    return let(F.array_sort(counted), _summed_runs)


def grown(held: Column, counted: Column) -> Column:
    """Return `bag` of both; `held` is one already. Few new structs leave most of it untouched."""

    def beside(values: Column) -> Column:
        def is_touched(entry: Column) -> Column:
            return F.array_contains(values, entry.getField("v"))

        merged = bag(joined(F.filter(held, is_touched), counted))
        return F.array_sort(joined(F.filter(held, lambda e: ~is_touched(e)), merged))

    few = let(F.array_distinct(F.transform(counted, lambda e: e.getField("v"))), beside)
    return F.when(F.size(counted) <= FEW, few).otherwise(bag(joined(held, counted)))


def _summed_runs(ordered: Column) -> Column:
    size = F.size(ordered)

    def begins(i: Column) -> Column:
        return ~F.get(ordered, i - 1).getField("v").eqNullSafe(F.get(ordered, i - 2).getField("v"))

    def run(starts: Column) -> Column:
        def summed(start: Column, i: Column) -> Column:
            length = F.coalesce(F.get(starts, i + 1), size + 1) - start
            parts = F.slice(ordered, start, length)
            total = F.aggregate(parts, F.lit(0).cast("bigint"), lambda n, e: n + e.getField("n"))
            return F.struct(F.get(ordered, start - 1).getField("v").alias("v"), total.alias("n"))

        return F.filter(F.transform(starts, summed), lambda e: e.getField("n") != 0)

    starts = F.filter(F.sequence(F.lit(1), size), begins)
    return F.when(size == 0, ordered).otherwise(let(starts, run))


def ordered_by(rows: Column, order: ElementOrder, type_: DataType) -> Column:
    """Sort an array of structs, which begin with the fields of `order`, by these fields."""
    if is_natural(order) and is_orderable(type_):
        return F.array_sort(rows)
    return F.array_sort(rows, lambda a, b: compare(a, b, order))


def is_natural(order: ElementOrder) -> bool:
    """True if Spark itself orders structs this way."""
    return all(nulls_first and not descending for _, descending, nulls_first in order)


def is_orderable(type_: DataType) -> bool:
    """True if Spark can compare values of the type."""
    match type_:
        case MapType() | VariantType():
            return False
        case ArrayType():
            return is_orderable(type_.elementType)
        case StructType():
            return all(is_orderable(f.dataType) for f in type_.fields)
    return True


def remaining(tagged: Column, order: ElementOrder, type_: DataType) -> Column:
    """Return, of structs with a tag `t`, those added, and those kept that were not removed.

    A removed struct is next to the one that it takes away: `order` is unique among those kept.
    """

    def of(rows: Column) -> Column:
        def stays(row: Column, i: Column) -> Column:
            following = F.get(rows, i + 1)
            went = (following.getField("t") == GONE) & (compare(row, following, order) == 0)
            tag = row.getField("t")
            return (tag == CAME) | ((tag == KEPT) & ~F.coalesce(went, F.lit(False)))

        return F.filter(rows, stays)

    return let(ordered_by(tagged, [*order, ("t", False, True)], type_), of)


def compare(a: Column, b: Column, order: ElementOrder) -> Column:
    """Return -1, 0 or 1 as struct `a` comes before, with or after `b`."""
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
