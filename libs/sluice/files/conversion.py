"""Conversion of stored values to the declared types; a row with a lost value gets a reason.

A value is lost if its cast fails, or if an integer or a decimal's places can't hold its fraction. A
time of day in a DATE, and a year outside 1 to 9999, are lost, too. FLOAT and DOUBLE are rounded to
a decimal's places because they have none of their own. `spelled` converts values that are written
as text.

Numbers of any width, times of any kind, texts and bytes are converted within their kind. Any other
change of type stops the batch: a text where a number is declared means a different column, so it is
refused with column, types and file.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
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

from sluice.declare.declared import CUT, FILE, KEPT, OP, RAW, REASON, Declared
from sluice.errors import QualityStop
from sluice.gate.sql import as_json, field_name, text
from sluice.language.names import ID
from sluice.spark.paths import REAL_PATH

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
        f"column {c.name} is {_show_type(found[c.name])} where {_show_type(c.dataType)} is declared"
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


def _show_type(type_: DataType) -> str:
    return type_.simpleString().upper()


BLOCK, ROW = "_sluice_block", "_sluice_row"
OWN = {REASON: "STRING", RAW: "STRING", FILE: "STRING", BLOCK: "BIGINT", ROW: "BIGINT"}
PASSED = (CUT, KEPT, OP, ID)  # further columns that a reader may add
_BINARY_FRACTIONS = (FloatType, DoubleType)
_LIMITS = {ByteType: 2.0**7, ShortType: 2.0**15, IntegerType: 2.0**31, LongType: 2.0**63}
SHOWN = 80  # characters of a value in a reason
METADATA = (f"{REAL_PATH} AS {FILE}", f"_metadata.file_block_start AS {BLOCK}")
NO_REASON = "CAST(NULL AS STRING)"


def ddl(spec: Declared) -> str:
    """Return the declared columns as a Spark schema; CHAR and VARCHAR hold text of any length."""
    return ", ".join(f"`{c.name}` {_spark_type(c.type)}" for c in spec.columns)


def empty(session: SparkSession, spec: Declared) -> DataFrame:
    """Return no rows, with the declared columns and OWN."""
    own = ", ".join(f"{name} {type_}" for name, type_ in OWN.items())
    return session.createDataFrame([], f"{ddl(spec)}, {own}")


def convert(rows: DataFrame, spec: Declared, *, origin: str) -> DataFrame:
    """Return the declared columns in their types, and OWN; null keys are among the reasons.

    The rows bring their types from `origin`. Raises QualityStop if a type is of another kind than
    declared. A column that the rows lack is null.
    """
    declared = rows.sparkSession.createDataFrame([], ddl(spec)).schema.fields
    check_types(f"{spec.pipeline}.{spec.name}", origin, rows.schema.fields, declared)
    stored = {f.name: f.dataType for f in (*declared, *rows.schema.fields)}
    types = {c.name: c.type for c in spec.columns}
    each = [_Conversion(f.name, stored[f.name], f.dataType, types[f.name]) for f in declared]
    lacking = [c for c in each if c.name not in rows.columns]
    nulls = (f"CAST(NULL AS {_spark_type(c.written)}) AS `{c.name}`" for c in lacking)
    known = rows.selectExpr("*", *nulls, *(() if FILE in rows.columns else METADATA))
    lost = [f"CASE WHEN {c.lost} THEN {c.says} END" for c in each if c.lost]
    judged = known.withColumn(REASON, F.expr(f"coalesce({', '.join([*lost, NO_REASON])})"))
    whole = as_json(f"struct({', '.join(f'`{c.name}`' for c in each)})")
    return finish(judged, spec, {c.name: c.kept for c in each}, whole)


def finish(judged: DataFrame, spec: Declared, kept: Mapping[str, str], raw: str) -> DataFrame:
    """Return the converted columns, OWN, and PASSED if there; `raw`: a whole row."""
    nulls = (f"CASE WHEN `{c}` IS NULL THEN 'key column {c} is null' END" for c in spec.key)
    typed = judged.selectExpr(
        *(f"{value} AS `{column}`" for column, value in kept.items()),
        f"make_valid_utf8({REASON}) AS {REASON}",
        f"CASE WHEN {REASON} IS NOT NULL THEN make_valid_utf8({raw}) END AS {RAW}",
        FILE,
        f"CAST({BLOCK} AS BIGINT) AS {BLOCK}",
        f"{ROW if ROW in judged.columns else 'monotonically_increasing_id()'} AS {ROW}",
        *(c for c in judged.columns if c in PASSED),
    )
    return typed.withColumn(REASON, F.expr(f"coalesce({', '.join([REASON, *nulls, 'NULL'])})"))


def _spark_type(type_: str) -> str:
    return re.sub(r"\b(VAR)?CHAR\(\d+\)", "STRING", type_)


@dataclass(frozen=True)
class _Conversion:
    """Conversion of one column from its stored type to the declared one, as SQL."""

    name: str
    stored: DataType
    declared: DataType
    written: str

    @property
    def kept(self) -> str:
        """The value, null if it is lost."""
        return f"CASE WHEN NOT ({self.lost}) THEN {self.value} END" if self.lost else self.value

    @property
    def value(self) -> str:
        if _alike(self.stored, self.declared):
            return f"`{self.name}`"
        return f"try_cast(`{self.name}` AS {_spark_type(self.written)})"

    @property
    def lost(self) -> str:
        """SQL for a row whose value can't become the declared type; '' if none can be lost."""
        found = "" if _alike(self.stored, self.declared) else self._lost_by_cast()
        either = " OR ".join(filter(None, (found, _impossible(self.value, self.declared))))
        return f"`{self.name}` IS NOT NULL AND coalesce({either}, true)" if either else ""

    def _lost_by_cast(self) -> str:
        if isinstance(self.declared, NESTED):
            return f"NOT ({as_json(self.value)} <=> {as_json(f'`{self.name}`')})"
        if isinstance(self.stored, BinaryType):
            return f"NOT is_valid_utf8(CAST(`{self.name}` AS STRING))"
        if isinstance(self.stored, _BINARY_FRACTIONS):
            return f"{self.value} IS NULL{self._is_beyond()}"
        if isinstance(self.stored, TIMES) and isinstance(self.declared, DateType):
            days = f"CAST({self.value} AS TIMESTAMP)"
            return f"{self.value} IS NULL OR {days} <> CAST(`{self.name}` AS TIMESTAMP)"
        return f"{self.value} IS NULL{self._has_further_places()}"

    def _has_further_places(self) -> str:
        """SQL for further places than declared; all places of a stored decimal count."""
        if not isinstance(self.stored, DecimalType):
            return ""
        if not isinstance(self.declared, (DecimalType, IntegralType)):
            return ""
        places = self.declared.scale if isinstance(self.declared, DecimalType) else 0
        # Compared as doubles: a common type with 0 would lose the last places of DECIMAL(38, 38).
        last = f"0.{'1':0>{places}}" if places else "1BD"
        rest = f"double(`{self.name}` % {last}) <> 0D"
        return f" OR {rest}" if self.stored.scale > places else ""

    def _is_beyond(self) -> str:
        """SQL for a stored FLOAT or DOUBLE that the cast saturates, truncates or makes zero."""
        stored = f"double(`{self.name}`)"
        if isinstance(self.declared, IntegralType):
            limit = _LIMITS[type(self.declared)]
            return f" OR {stored} >= {limit!r}D OR double({self.value}) <> {stored}"
        if isinstance(self.declared, FloatType):
            is_infinite = f"abs({self.value}) = double('Infinity') AND abs({stored})"
            return f" OR {is_infinite} < double('Infinity') OR {self.value} = 0 AND {stored} <> 0"
        return ""

    @property
    def says(self) -> str:
        value = "hex" if isinstance(self.stored, (BinaryType, StringType)) else "string"
        shown = f"left({value}(`{self.name}`), {SHOWN})"
        if isinstance(self.stored, DecimalType) and self.stored.scale > 0:
            shown = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM string(`{self.name}`)))"
        before, after = text(f"column {self.name}: "), text(f" is not a valid {self.written}")
        return f"concat({before}, {shown}, {after})"


def _impossible(sql: str, type_: DataType, depth: int = 0) -> str:
    """Return SQL that finds values which readers can't show; '' if there are none.

    That is a year outside 1 to 9999, and bytes in a text that are not UTF-8.
    """
    if isinstance(type_, TIMES):
        return f"year({sql}) NOT BETWEEN 1 AND 9999"
    if isinstance(type_, StringType):
        return f"NOT is_valid_utf8({sql})"
    match type_:
        case ArrayType():
            parts = [(sql, type_.elementType)]
        case MapType():
            parts = [(f"map_keys({sql})", type_.keyType), (f"map_values({sql})", type_.valueType)]
        case StructType():
            parts = [(f"array({sql}.{field_name(f.name)})", f.dataType) for f in type_.fields]
        case _:
            return ""
    v = f"v{depth}"
    tests = ((array, _impossible(v, part, depth + 1)) for array, part in parts)
    return " OR ".join(f"exists({a}, {v} -> coalesce({test}, false))" for a, test in tests if test)


def _alike(a: DataType, b: DataType) -> bool:
    """True if the types are the same, ignoring nullability."""
    return a.simpleString() == b.simpleString()


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
