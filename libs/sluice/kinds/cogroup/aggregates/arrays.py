"""Arrays as small ordered collections: bags of counted values, lists in a declared order.

Cost: each function works within a row, in the time of sorting an array that is mostly sorted.
"""

from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

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
