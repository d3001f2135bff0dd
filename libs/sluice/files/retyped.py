"""Stored types that may differ from the declared ones; any other change of type stops a batch.

Numbers of any width, times of any kind, texts and bytes are converted within their kind, value by
value. A value that does not fit is its row's reason. A text where a number is declared means a
different column, so it is refused with column, types and file.
"""

from collections.abc import Iterable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sluice.errors import QualityStop

NESTED = (ArrayType, MapType, StructType)
TIMES = (DateType, TimestampType, TimestampNTZType)
INTEGERS = (ByteType, ShortType, IntegerType, LongType)  # from the smallest
KINDS = (NumericType, TIMES, (StringType, BinaryType))


def check_types(
    table: str, origin: str, stored: Iterable[StructField], declared: Iterable[StructField]
) -> None:
    """Raise QualityStop if a declared column is of another kind in the data at `origin`."""
    found = {field.name: field.dataType for field in stored}
    wrong = [
        f"column {c.name} is {_shown(found[c.name])} where {_shown(c.dataType)} is declared"
        for c in declared
        if c.name in found and not is_convertible(found[c.name], c.dataType)
    ]
    if wrong:
        raise QualityStop(
            f"{table}: {origin}: {'; '.join(wrong)}",
            hint="nothing was committed; fix the delivery or the source's `schema`",
        )


def is_convertible(stored: DataType, declared: DataType) -> bool:
    """True if stored values can be converted to the declared type, if they fit."""
    if isinstance(stored, NESTED) or isinstance(declared, NESTED):
        return _same_shape(stored, declared)
    if type(stored) is type(declared):
        return True
    return any(isinstance(stored, kind) and isinstance(declared, kind) for kind in KINDS)


def _same_shape(a: DataType, b: DataType) -> bool:
    match a, b:
        case ArrayType(), ArrayType():
            return is_convertible(a.elementType, b.elementType)
        case MapType(), MapType():
            return _keys_fit(a.keyType, b.keyType) and is_convertible(a.valueType, b.valueType)
        case StructType(), StructType():
            pairs = zip(a.fields, b.fields, strict=False)
            alike = (is_convertible(x.dataType, y.dataType) for x, y in pairs)
            return a.names == b.names and all(alike)
    return False


def _keys_fit(stored: DataType, declared: DataType) -> bool:
    """True if no key can be lost: Spark has no map with a lost key, not even a null one."""
    if isinstance(stored, INTEGERS) and isinstance(declared, INTEGERS):
        return INTEGERS.index(type(stored)) <= INTEGERS.index(type(declared))
    return stored.simpleString() == declared.simpleString()


def _shown(type_: DataType) -> str:
    return type_.simpleString().upper()
