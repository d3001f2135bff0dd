"""Nested types as Spark's DDL, with other types in place of those inside them."""

from collections.abc import Callable

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sluice.gate.rules.sql import field_name


def ddl_of(type_: DataType, scalar: Callable[[DataType], str] = DataType.simpleString) -> str:
    """Return the type's DDL; `scalar` gives that of every type in it that is not nested."""
    match type_:
        case ArrayType():
            return f"ARRAY<{ddl_of(type_.elementType, scalar)}>"
        case MapType():
            return f"MAP<{ddl_of(type_.keyType, scalar)}, {ddl_of(type_.valueType, scalar)}>"
        case StructType():
            fields = (f"{field_name(f.name)}: {ddl_of(f.dataType, scalar)}" for f in type_.fields)
            return f"STRUCT<{', '.join(fields)}>"
    return scalar(type_)


def texts_of(type_: DataType) -> str:
    """Return the type's DDL with STRING in place of every scalar in it."""
    return ddl_of(type_, lambda _: "STRING")
