"""Stored values as the declared types; a value that would be lost on the way is its row's reason.

A cast that fails, a fraction that an integer or a decimal's places can't hold, a time of no day and
a year that is not of four digits are lost values. FLOAT and DOUBLE are rounded to a decimal's
places, and so are texts beyond FURTHER more of them: the noise of binary fractions is there.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    StringType,
)

from sluice.quality.sql import as_json, text
from sluice.quality.tally import FILE, RAW, REASON
from sluice.runtime.retyped import NESTED, TIMES, check_types
from sluice.specs.decimals import MOST, Decimal
from sluice.specs.dimension import Dimension
from sluice.specs.source import Source
from sluice.specs.types import head

Declared = Source | Dimension
BLOCK, ROW = "_sluice_block", "_sluice_row"
OWN = {REASON: "STRING", RAW: "STRING", FILE: "STRING", BLOCK: "BIGINT", ROW: "BIGINT"}
_FRACTIONS = (FloatType, DoubleType, DecimalType)
FURTHER = 6  # decimal places that are looked at behind the declared ones
SHOWN = 80  # characters of a value in a reason
METADATA = (f"_metadata.file_path AS {FILE}", f"_metadata.file_block_start AS {BLOCK}")
REPLACEMENT = "\ufffd"  # what a decoder puts where bytes are not of its encoding


def ddl(spec: Declared) -> str:
    """The declared columns as a Spark schema; CHAR and VARCHAR hold text of any length."""
    return ", ".join(f"`{c.name}` {_spark_type(c.type)}" for c in spec.columns)


def empty(session: SparkSession, spec: Declared) -> DataFrame:
    """No rows, with the declared columns and OWN."""
    own = ", ".join(f"{name} {type_}" for name, type_ in OWN.items())
    return session.createDataFrame([], f"{ddl(spec)}, {own}")


def converted(
    rows: DataFrame,
    spec: Declared,
    *,
    reason: str = "NULL",
    is_text: bool = False,
    origin: str = "",
) -> DataFrame:
    """The declared columns in their types, and OWN; null keys are among the reasons.

    `reason`: SQL for what the reader has to say of a row. `is_text`: the files were decoded, so
    their texts may hold what is left of bytes that are not of the encoding. Else types came with
    the rows, from `origin`: QualityStop if one is of another kind than declared. A column that the
    rows lack is null.
    """
    declared = rows.sparkSession.createDataFrame([], ddl(spec)).schema.fields
    if not is_text:
        check_types(f"{spec.pipeline}.{spec.name}", origin, rows.schema.fields, declared)
    stored = {f.name: f.dataType for f in (*declared, *rows.schema.fields)}
    types = {c.name: c.type for c in spec.columns}
    each = [_Conversion(f.name, stored[f.name], f.dataType, types[f.name]) for f in declared]
    each = [replace(c, is_text=is_text) for c in each]
    lacking = [c for c in each if c.name not in rows.columns]
    nulls = (f"CAST(NULL AS {_spark_type(c.written)}) AS `{c.name}`" for c in lacking)
    known = rows.selectExpr("*", *nulls, *(() if FILE in rows.columns else METADATA))
    lost = [f"CASE WHEN {c.lost} THEN {c.says} END" for c in each if c.lost]
    says = f"coalesce({', '.join([reason, *lost, 'NULL'])})"
    judged = known.withColumn(REASON, F.expr(f"CAST({says} AS STRING)"))
    whole = as_json(f"struct({', '.join(f'`{c.name}`' for c in each)})")
    raw = f"coalesce({RAW}, {whole})" if RAW in known.columns else whole
    typed = judged.selectExpr(
        *(f"{c.kept} AS `{c.name}`" for c in each),
        f"make_valid_utf8({REASON}) AS {REASON}",
        f"CASE WHEN {REASON} IS NOT NULL THEN make_valid_utf8({raw}) END AS {RAW}",
        FILE,
        f"CAST({BLOCK} AS BIGINT) AS {BLOCK}",
        f"{ROW if ROW in known.columns else 'monotonically_increasing_id()'} AS {ROW}",
    )
    return _with_null_keys(typed, spec.key)


def _with_null_keys(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    nulls = (f"CASE WHEN `{c}` IS NULL THEN 'key column {c} is null' END" for c in key)
    return rows.withColumn(REASON, F.expr(f"coalesce({', '.join([REASON, *nulls, 'NULL'])})"))


def ddl_of_texts(spec: Declared) -> str:
    """As `ddl`, for values that are written as text: decimals with FURTHER places, to be judged."""
    return ", ".join(f"`{c.name}` {type_of_text(c.type)}" for c in spec.columns)


def type_of_text(type_: str) -> str:
    """The type in which a written value keeps what the declared one would round away."""
    found = Decimal.of(type_) if head(type_) == "DECIMAL" else None
    return str(_further(found)) if found else _spark_type(type_)


def _further(type_: Decimal) -> Decimal:
    more = min(FURTHER, MOST - type_.precision)
    return Decimal(type_.precision + more, type_.scale + more)


def _spark_type(type_: str) -> str:
    return re.sub(r"\b(VAR)?CHAR\(\d+\)", "STRING", type_)


@dataclass(frozen=True)
class _Conversion:
    """One column from its stored type to the declared one, as SQL."""

    name: str
    stored: DataType
    declared: DataType
    written: str
    is_text: bool = False

    @property
    def kept(self) -> str:
        """The value, null where it is lost."""
        return f"CASE WHEN NOT ({self.lost}) THEN {self.value} END" if self.lost else self.value

    @property
    def value(self) -> str:
        """The value as the declared type."""
        if _alike(self.stored, self.declared):
            return f"`{self.name}`"
        return f"try_cast(`{self.name}` AS {_spark_type(self.written)})"

    @property
    def lost(self) -> str:
        """True for a row whose value can't be had as the declared type; '' if that can't be."""
        found = "" if _alike(self.stored, self.declared) else self._lost_by_cast()
        if isinstance(self.declared, TIMES):
            years = f"year({self.value}) NOT BETWEEN 1 AND 9999"
            found = f"{found} OR {years}" if found else years
        if self.is_decoded:
            found = _undecoded(self.name, self.stored)
        return f"`{self.name}` IS NOT NULL AND coalesce({found}, true)" if found else ""

    @property
    def is_decoded(self) -> bool:
        return self.is_text and isinstance(self.declared, (StringType, *NESTED))

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
        if isinstance(self.stored, StringType) and isinstance(self.declared, TIMES):
            return f"{self.value} IS NULL OR NOT `{self.name}` RLIKE '^\\\\s*[0-9]{{4}}'"
        return f"{self.value} IS NULL{self._has_further_places()}"

    def _has_further_places(self) -> str:
        """Of a stored decimal all of its places count, of a text those that are looked at."""
        declared = self.declared
        if not isinstance(declared, DecimalType):
            return ""
        stored = _further(Decimal(declared.precision, declared.scale))
        if isinstance(self.stored, DecimalType):
            stored = Decimal(self.stored.precision, self.stored.scale)
        is_exact = isinstance(self.stored, (StringType, DecimalType))
        if not is_exact or stored.scale <= declared.scale:
            return ""
        return f" OR try_cast(`{self.name}` AS {stored}) % 1E-{declared.scale}BD <> 0"

    @property
    def says(self) -> str:
        if self.is_decoded:
            return text(f"column {self.name} has bytes that are not of the encoding")
        value = "hex" if isinstance(self.stored, BinaryType) else "string"
        shown = f"left({value}(`{self.name}`), {SHOWN})"
        if isinstance(self.stored, DecimalType) and self.stored.scale > 0:
            shown = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM string(`{self.name}`)))"
        before, after = text(f"column {self.name}: "), text(f" is no {self.written}")
        return f"concat({before}, {shown}, {after})"


def _undecoded(name: str, type_: DataType) -> str:
    if isinstance(type_, StringType):
        return f"NOT is_valid_utf8(`{name}`) OR contains(`{name}`, '{REPLACEMENT}')"
    return f"NOT is_valid_utf8(to_json(`{name}`))"


def _alike(a: DataType, b: DataType) -> bool:
    """The same type, whatever may be null in it."""
    return _text(a) == _text(b)


def _text(type_: DataType) -> str:
    return type_.simpleString()
