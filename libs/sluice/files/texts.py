"""Rows of texts as rows of the declared types; a text that is not accepted is its row's reason."""

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructField

from sluice.declare.declared import Declared
from sluice.declare.delivered_row import CUT, FILE, RAW, REASON
from sluice.files.conversion import METADATA, SHOWN, ddl, finished
from sluice.files.retyped import NESTED
from sluice.files.spelled import Texts
from sluice.gate.rules.sql import as_json, name, text

REPLACEMENT = "\ufffd"  # a decoder's replacement for bytes outside its encoding
VALUE = "_sluice_value_"


def of_texts(
    rows: DataFrame,
    spec: Declared,
    texts: Texts,
    *,
    reason: str,
    values: Collection[str] = (),
) -> DataFrame:
    """Return the declared columns in their types, and conversion.OWN.

    `reason`: SQL for what the reader reports of a row. A column that the rows lack is null.
    `values`: columns that are of their types already.
    """
    declared = rows.sparkSession.createDataFrame([], ddl(spec)).schema.fields
    lacking = [f for f in declared if f.name not in rows.columns]
    nulls = (f"CAST(NULL AS STRING) AS {name(f.name)}" for f in lacking)
    known = rows.selectExpr("*", *nulls, *(() if FILE in rows.columns else METADATA))
    read = [f for f in declared if f.name not in values]
    typed = _typed(known, read, texts)
    types = {c.name: c.type for c in spec.columns}
    said = (_says(f, types[f.name], texts) for f in read)
    says = f"coalesce({', '.join([reason, *filter(None, said), 'NULL'])})"
    judged = typed.selectExpr("*", f"CAST({says} AS STRING) AS {REASON}", *_cut(read, texts))
    kept = {f.name: name(f.name) for f in declared}
    kept |= {f.name: f"{VALUE}{f.name}" for f in read}
    whole = as_json(f"struct({', '.join(name(f.name) for f in declared)})")
    raw = f"coalesce({RAW}, {whole})" if RAW in rows.columns else whole
    return finished(judged, spec, kept, raw)


def _typed(rows: DataFrame, read: Sequence[StructField], texts: Texts) -> DataFrame:
    """Return the rows with the values of their texts, computed a step at a time."""
    typed = rows.selectExpr("*", *(f"{name(f.name)} AS {VALUE}{f.name}" for f in read))
    steps = {f"{VALUE}{f.name}": texts.steps(f.dataType) for f in read}
    for nth in range(max(map(len, steps.values()), default=0)):
        now = {column: made[nth](column) for column, made in steps.items() if nth < len(made)}
        typed = typed.withColumns({column: F.expr(sql) for column, sql in now.items()})
    return typed


def _cut(read: Sequence[StructField], texts: Texts) -> tuple[str, ...]:
    """Return SQL for CUT, the number of columns that lost digits by a pattern, if any can."""
    cut = filter(None, (texts.cut(_written(f, texts), f.dataType) for f in read))
    counted = " + ".join(f"coalesce(CAST({condition} AS INT), 0)" for condition in cut)
    return (f"{counted} AS {CUT}",) if counted else ()


def _says(field: StructField, written: str, texts: Texts) -> str:
    """Return SQL for the reason of a badly encoded or rejected text; '' if there can be none."""
    column, type_ = name(field.name), field.dataType
    if isinstance(type_, (StringType, BinaryType)) and not texts.is_json:
        undecoded = f"NOT is_valid_utf8({column}) OR contains({column}, '{REPLACEMENT}')"
        why = text(f"column {field.name} has bytes that are invalid in the encoding")
        return f"CASE WHEN {undecoded} THEN {why} END"
    if isinstance(type_, StringType):
        return ""
    is_lost = f"{column} IS NOT NULL AND {VALUE}{field.name} IS NULL"
    shown = f"left({_written(field, texts)}, {SHOWN})"
    before, after = text(f"column {field.name}: "), text(f" is not a valid {written}")
    return f"CASE WHEN {is_lost} THEN concat({before}, {shown}, {after}) END"


def _written(field: StructField, texts: Texts) -> str:
    """Return SQL for a column's text as its file has it."""
    column = name(field.name)
    is_nested = isinstance(field.dataType, NESTED)
    return texts.shown(column) if is_nested else texts.restored(column)
