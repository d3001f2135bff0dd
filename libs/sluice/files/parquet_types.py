"""Types of a Parquet file's columns, as Spark writes or calls them."""

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sluice.gate.sql import field_name


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


NANOS = "NANOS"
MAX_PRECISION = 38  # of Spark's DECIMAL
VOID = "VOID"  # a column without a single value, as Arrow and pandas write it


def stored_type(type_: pa.DataType, physical: str, logical: str) -> str:
    """Return a column's type as Spark's DDL; '' for one that Spark does not have.

    `physical` and `logical` are the types of the file's own column.
    """
    if pa.types.is_timestamp(type_):
        if physical == "INT96":
            return "TIMESTAMP"
        if "nanoseconds" in logical:
            return NANOS
    try:
        return _ddl(type_)
    except KeyError:
        return ""


def _ddl(type_: pa.DataType) -> str:
    """Return the type as Spark's DDL. Raises KeyError for a type that Spark does not have."""
    if pa.types.is_dictionary(type_):
        return _ddl(type_.value_type)
    if pa.types.is_nested(type_):
        return _nested_ddl(type_)
    if pa.types.is_decimal(type_) and type_.precision <= MAX_PRECISION:
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pa.types.is_timestamp(type_) and type_.unit != "ns":
        return "TIMESTAMP" if type_.tz else "TIMESTAMP_NTZ"
    return _PLAIN[str(type_)]


def _nested_ddl(type_: pa.DataType) -> str:
    if pa.types.is_map(type_):
        return f"MAP<{_ddl(type_.key_type)}, {_ddl(type_.item_type)}>"
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(f'`{f.name}`: {_ddl(f.type)}' for f in type_)}>"
    return f"ARRAY<{_ddl(type_.value_type)}>"


_PLAIN = {
    "null": VOID,
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "uint8": "SMALLINT",
    "uint16": "INT",
    "uint32": "BIGINT",
    "uint64": "DECIMAL(20, 0)",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "large_string": "STRING",
    "string_view": "STRING",
    "binary": "BINARY",
    "large_binary": "BINARY",
    "date32[day]": "DATE",
    "date64[ms]": "DATE",
}
