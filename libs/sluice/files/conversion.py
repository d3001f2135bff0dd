"""Conversion of stored values to the declared types; a value lost on the way is its row's reason.

A value is lost if its cast fails, or if an integer or a decimal's places can't hold its fraction. A
time of day in a DATE, and a year outside 1 to 9999, are lost, too. FLOAT and DOUBLE are rounded to
a decimal's places because they have none of their own. `texts` converts values that are written as
text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
)

from sluice.declare.declared import Declared
from sluice.declare.delivered_row import FILE, RAW, REASON
from sluice.files.retyped import NESTED, TIMES, check_types
from sluice.gate.sql import as_json, text
from sluice.spark.paths import REAL_PATH

BLOCK, ROW = "_sluice_block", "_sluice_row"
OWN = {REASON: "STRING", RAW: "STRING", FILE: "STRING", BLOCK: "BIGINT", ROW: "BIGINT"}
_FRACTIONS = (FloatType, DoubleType, DecimalType)
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


def converted(rows: DataFrame, spec: Declared, *, origin: str) -> DataFrame:
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
    return finished(judged, spec, {c.name: c.kept for c in each}, whole)


def finished(judged: DataFrame, spec: Declared, kept: Mapping[str, str], raw: str) -> DataFrame:
    """Return the columns by what is kept of them, and OWN; `raw`: SQL for a row as it was."""
    typed = judged.selectExpr(
        *(f"{value} AS `{column}`" for column, value in kept.items()),
        f"make_valid_utf8({REASON}) AS {REASON}",
        f"CASE WHEN {REASON} IS NOT NULL THEN make_valid_utf8({raw}) END AS {RAW}",
        FILE,
        f"CAST({BLOCK} AS BIGINT) AS {BLOCK}",
        f"{ROW if ROW in judged.columns else 'monotonically_increasing_id()'} AS {ROW}",
    )
    return _with_null_keys(typed, spec.key)


def _with_null_keys(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    nulls = (f"CASE WHEN `{c}` IS NULL THEN 'key column {c} is null' END" for c in key)
    return rows.withColumn(REASON, F.expr(f"coalesce({', '.join([REASON, *nulls, 'NULL'])})"))


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
        """The value as the declared type."""
        if _alike(self.stored, self.declared):
            return f"`{self.name}`"
        return f"try_cast(`{self.name}` AS {_spark_type(self.written)})"

    @property
    def lost(self) -> str:
        """SQL for a row whose value can't become the declared type; '' if none can be lost."""
        found = "" if _alike(self.stored, self.declared) else self._lost_by_cast()
        if isinstance(self.declared, TIMES):
            years = f"year({self.value}) NOT BETWEEN 1 AND 9999"
            found = f"{found} OR {years}" if found else years
        return f"`{self.name}` IS NOT NULL AND coalesce({found}, true)" if found else ""

    def _lost_by_cast(self) -> str:
        if isinstance(self.declared, NESTED):
            return f"NOT ({as_json(self.value)} <=> {as_json(f'`{self.name}`')})"
        if isinstance(self.stored, BinaryType):
            return f"NOT is_valid_utf8(CAST(`{self.name}` AS STRING))"
        if isinstance(self.stored, _FRACTIONS) and isinstance(self.declared, IntegralType):
            return f"NOT coalesce({self.value} = `{self.name}`, false)"
        if isinstance(self.stored, TIMES) and isinstance(self.declared, DateType):
            days = f"CAST({self.value} AS TIMESTAMP)"
            return f"{self.value} IS NULL OR {days} <> CAST(`{self.name}` AS TIMESTAMP)"
        return f"{self.value} IS NULL{self._has_further_places()}"

    def _has_further_places(self) -> str:
        """SQL for further places than declared; all places of a stored decimal count."""
        stored, declared = self.stored, self.declared
        if not isinstance(stored, DecimalType) or not isinstance(declared, DecimalType):
            return ""
        if stored.scale <= declared.scale:
            return ""
        return f" OR `{self.name}` % 1E-{declared.scale}BD <> 0"

    @property
    def says(self) -> str:
        value = "hex" if isinstance(self.stored, BinaryType) else "string"
        shown = f"left({value}(`{self.name}`), {SHOWN})"
        if isinstance(self.stored, DecimalType) and self.stored.scale > 0:
            shown = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM string(`{self.name}`)))"
        before, after = text(f"column {self.name}: "), text(f" is no {self.written}")
        return f"concat({before}, {shown}, {after})"


def _alike(a: DataType, b: DataType) -> bool:
    """True if the types are the same, whatever may be null in them."""
    return _text(a) == _text(b)


def _text(type_: DataType) -> str:
    return type_.simpleString()
