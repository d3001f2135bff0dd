"""Changes of rows: the net change between two versions, and the changelog from old rows to new.

Orders are total: sort keys with their null order, ended by a unique key.

The net change is a weighted set of rows. A row has weight +1 for each copy that was added and -1
for each that was removed. Copies added and removed in between cancel out, and so do changes of
columns that the reader does not use. This is the Z-set of Budiu et al., "DBSP: Automatic
Incremental View Maintenance", VLDB 2023.

Every batch ends with the minimal changelog, so a rerun emits nothing and rows with unchanged values
are left out.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sluice.language.names import CHANGE_TYPE, COMES

T = TypeVar("T")
WEIGHT = "_sluice_weight"
CHANGE = "_sluice_change"
_SIDES = ("old", "new")


def balance(joined: Callable[[T, T], T], parts: Sequence[T]) -> T:
    """Return all parts joined two by two, in their order; there must be at least one.

    Spark Connect's messages may be nested a hundred levels deep, and a chain takes two for each
    part, a balanced tree few.
    """
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return joined(balance(joined, parts[:middle]), balance(joined, parts[middle:]))


def net(feed: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return `columns` and WEIGHT (never 0) of the changed rows. One shuffle of the feed.

    `feed` is Delta's change feed of the versions to consume. A row's old image has negative weight,
    its new image positive weight.
    """
    return sum_weights(weigh(feed, columns), columns)


def weigh(feed: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return `columns` and WEIGHT (1 or -1) of each row of a feed, not summed."""
    comes = F.col(CHANGE_TYPE).isin(*COMES)
    return feed.select(*_quote_all(columns), F.when(comes, 1).otherwise(-1).alias(WEIGHT))


def between(old: DataFrame, new: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return the net change from one state of a table to another. One shuffle of both."""
    gone = as_inserts(old, columns).withColumn(WEIGHT, -F.col(WEIGHT))
    return sum_weights(as_inserts(new, columns).unionByName(gone), columns)


def as_inserts(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return a whole table as the change from nothing."""
    return rows.select(*_quote_all(columns), F.lit(1).cast("bigint").alias(WEIGHT))


def arrivals(changes: DataFrame) -> DataFrame:
    """Return the new images, without weights. Only for changes whose rows are unique."""
    return changes.where(F.col(WEIGHT) > 0).drop(WEIGHT)


def departures(changes: DataFrame) -> DataFrame:
    """Return the old images, without weights. Only for changes whose rows are unique."""
    return changes.where(F.col(WEIGHT) < 0).drop(WEIGHT)


def sum_weights(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Sum the weights of equal rows and drop those that cancel out. One shuffle."""
    sums = rows.groupBy(*_quote_all(columns)).agg(F.sum(WEIGHT).alias(WEIGHT))
    return sums.where(F.col(WEIGHT) != 0)


def _quote_all(columns: Sequence[str]) -> list[str]:
    return [f"`{c}`" for c in columns]


def diff(
    old: DataFrame, new: DataFrame, key: Sequence[str], *, ignore: Collection[str] = ()
) -> DataFrame:
    """Return the columns of `new` and CHANGE: insert, update or delete (with the old row).

    `key` identifies a row on either side. Null and NaN are values like any other. Columns in
    `ignore` don't make a row different. Cost: one shuffle of both sides together.
    """
    columns = new.columns
    sides = _side(old.select(*_quote_all(columns)), "old").unionByName(_side(new, "new"))
    pairs = sides.groupBy(*_quote_all(key)).agg(
        *[F.first(F.when(F.col("_side") == s, F.col("_row")), True).alias(s) for s in _SIDES]
    )
    if ignore or _has_map(new.schema):
        is_same = agree_in(new.schema, [c for c in columns if c not in ignore and c not in key])
    else:  # rows are compared whole if all of them counts
        is_same = F.col("old").eqNullSafe(F.col("new"))
    change = (
        F.when(F.col("old").isNull(), "insert")
        .when(F.col("new").isNull(), "delete")
        .when(~is_same, "update")
    )
    changed = pairs.withColumn(CHANGE, change).where(F.col(CHANGE).isNotNull())
    shown = changed.withColumn("_row", F.coalesce(F.col("new"), F.col("old")))
    return shown.select(*[F.col("_row").getField(c).alias(c) for c in columns], CHANGE)


def insertions(rows: DataFrame) -> DataFrame:
    """Return the changelog of rows that are all new."""
    return rows.withColumn(CHANGE, F.lit("insert"))


def deletions(rows: DataFrame) -> DataFrame:
    """Return the changelog of rows that all leave the table."""
    return rows.withColumn(CHANGE, F.lit("delete"))


def _side(rows: DataFrame, side: str) -> DataFrame:
    whole = F.struct(*_quote_all(rows.columns)).alias("_row")
    return rows.select("*", whole, F.lit(side).alias("_side"))


def agree_in(schema: StructType, columns: Sequence[str], sides: tuple[str, str] = _SIDES) -> Column:
    """True if two struct columns, rows of that schema, agree in `columns`. Never null."""
    old, new = sides
    plain = [c for c in columns if not _has_map(schema[c].dataType)]
    pairs = [f"{old}.`{c}` <=> {new}.`{c}`" for c in plain]
    same = F.expr(" AND ".join(["true", *pairs]))
    for name in set(columns).difference(plain):
        type_ = schema[name].dataType
        before, after = (_order_maps(F.col(side).getField(name), type_) for side in sides)
        same = same & before.eqNullSafe(after)
    return same


def _order_maps(value: Column, type_: DataType) -> Column:
    """Return `value` with its maps, which Spark can't compare, as sorted arrays of entries."""
    match type_:
        case MapType():
            entry = StructType().add("key", type_.keyType).add("value", type_.valueType)
            return F.array_sort(_order_maps(F.map_entries(value), ArrayType(entry)))
        case ArrayType() if _has_map(type_):
            return F.transform(value, lambda item: _order_maps(item, type_.elementType))
        case StructType() if _has_map(type_):
            fields = [_order_maps(value.getField(f.name), f.dataType).alias(f.name) for f in type_]
            return F.when(value.isNotNull(), F.struct(*fields))
        case _:
            return value


def _has_map(type_: DataType) -> bool:
    match type_:
        case MapType():
            return True
        case ArrayType():
            return _has_map(type_.elementType)
        case StructType():
            return any(_has_map(f.dataType) for f in type_)
        case _:
            return False


@dataclass(frozen=True)
class Direction:
    """One column of an order."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def sql(self, row: str = "") -> str:
        """Return an item of ORDER BY; `row`: the struct column or alias that has the column."""
        direction = "DESC" if self.descending else "ASC"
        nulls = "FIRST" if self.nulls_first else "LAST"
        return f"{field(row, self.column)} {direction} NULLS {nulls}"

    @property
    def reversed(self) -> "Direction":
        """The reverse direction: the last comes first."""
        return replace(self, descending=not self.descending, nulls_first=not self.nulls_first)


def sort_key(column: Column, descending: bool, nulls_first: bool) -> Column:
    """Return `column` as a sort order."""
    if descending:
        return column.desc_nulls_first() if nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if nulls_first else column.asc_nulls_last()


def last_first(columns: Sequence[str]) -> list[Column]:
    """Return a descending order, nulls last: the greatest row comes first."""
    return [sort_key(F.col(f"`{c}`"), descending=True, nulls_first=False) for c in columns]


def at_or_before(order: Sequence[Direction], left: str, right: str) -> str:
    """SQL that is true if the row `left` comes no later in the order than `right`. Never null."""
    found = "true"
    for direction in reversed(order):
        a, b = field(left, direction.column), field(right, direction.column)
        by_value = f"coalesce({a} {'>' if direction.descending else '<'} {b}, false)"
        first, second = (a, b) if direction.nulls_first else (b, a)
        before = f"{by_value} OR ({first} IS NULL AND {second} IS NOT NULL)"
        found = f"({before} OR ({a} <=> {b} AND {found}))"
    return found


def field(row: str, column: str) -> str:
    """SQL for a column of a struct column or alias; of the row itself without one."""
    return f"{row}.`{column}`" if row else f"`{column}`"
