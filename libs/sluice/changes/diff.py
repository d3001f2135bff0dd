"""The difference between old and new rows: the minimal changelog.

Every batch ends here, so a rerun emits nothing and rows with unchanged values are left out.
"""

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

CHANGE = "_sluice_change"
_SIDES = ("old", "new")


def diff(
    old: DataFrame, new: DataFrame, key: Sequence[str], *, ignore: Collection[str] = ()
) -> DataFrame:
    """Return the columns of `new` and CHANGE: insert, update or delete (with the old row).

    `key` identifies a row on either side. Null and NaN are values like any other. Columns in
    `ignore` don't make a row different. Cost: one shuffle of both sides together.
    """
    columns = new.columns
    sides = _side(old.select(*_named(columns)), "old").unionByName(_side(new, "new"))
    pairs = sides.groupBy(*[F.col(f"`{c}`") for c in key]).agg(
        *[F.first(F.when(F.col("_side") == s, F.col("_row")), True).alias(s) for s in _SIDES]
    )
    change = (
        F.when(F.col("old").isNull(), "insert")
        .when(F.col("new").isNull(), "delete")
        .when(~_is_same(new.schema, key, ignore), "update")
    )
    changed = pairs.withColumn(CHANGE, change).where(F.col(CHANGE).isNotNull())
    shown = changed.withColumn("_row", F.coalesce(F.col("new"), F.col("old")))
    return shown.select(*[F.col("_row").getField(c).alias(c) for c in columns], CHANGE)


def _is_same(schema: StructType, key: Sequence[str], ignore: Collection[str]) -> Column:
    """True if the rows of one key agree. Rows are compared whole if all of them counts."""
    if not ignore and not _has_map(schema):
        return F.col("old").eqNullSafe(F.col("new"))
    return unchanged(schema, [c for c in schema.names if c not in ignore and c not in key])


def inserted(rows: DataFrame) -> DataFrame:
    """Return the changelog of rows that are all new."""
    return rows.withColumn(CHANGE, F.lit("insert"))


def deleted(rows: DataFrame) -> DataFrame:
    """Return the changelog of rows that all leave the table."""
    return rows.withColumn(CHANGE, F.lit("delete"))


def _side(rows: DataFrame, side: str) -> DataFrame:
    columns = rows.columns
    return rows.select("*", F.struct(*_named(columns)).alias("_row"), F.lit(side).alias("_side"))


def _named(columns: Sequence[str]) -> list[Column]:
    return [F.col(f"`{c}`") for c in columns]


def unchanged(
    schema: StructType, columns: Sequence[str], sides: tuple[str, str] = _SIDES
) -> Column:
    """True if two struct columns, rows of that schema, agree in `columns`. Never null."""
    old, new = sides
    plain = [c for c in columns if not _has_map(schema[c].dataType)]
    pairs = [f"{old}.`{c}` <=> {new}.`{c}`" for c in plain]
    same = F.expr(" AND ".join(["true", *pairs]))
    for name in set(columns).difference(plain):
        type_ = schema[name].dataType
        before, after = (_ordered(F.col(side).getField(name), type_) for side in sides)
        same = same & before.eqNullSafe(after)
    return same


def _ordered(value: Column, type_: DataType) -> Column:
    """Return `value` with its maps, which Spark can't compare, as sorted arrays of entries."""
    match type_:
        case MapType():
            return F.array_sort(_ordered(F.map_entries(value), _entries(type_)))
        case ArrayType() if _has_map(type_):
            return F.transform(value, lambda item: _ordered(item, type_.elementType))
        case StructType() if _has_map(type_):
            fields = [_ordered(value.getField(f.name), f.dataType).alias(f.name) for f in type_]
            return F.when(value.isNotNull(), F.struct(*fields))
        case _:
            return value


def _entries(type_: MapType) -> ArrayType:
    entry = StructType().add("key", type_.keyType).add("value", type_.valueType)
    return ArrayType(entry)


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
