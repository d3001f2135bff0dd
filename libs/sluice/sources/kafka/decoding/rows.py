"""Messages as rows of the declared columns, each with its reason, its identity and what it does.

A message's identity is its partition and offset, so reading it again gives the same rows. In
quarantine a row keeps its message whole.
"""

from contextlib import suppress

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StructField, StructType

from sluice.declare.delivered_row import KEPT, OP
from sluice.files.conversion import BLOCK, ROW, ddl
from sluice.files.here import as_texts
from sluice.files.json_texts import MARK
from sluice.files.marks import POSITION
from sluice.files.spelled import Texts
from sluice.files.texts import of_texts
from sluice.interpreter.values.arrow_conversion import arrow_type
from sluice.language.interval import Interval
from sluice.sources.delivery import objected
from sluice.sources.kafka.decoding.columns import DecodedColumn
from sluice.sources.kafka.decoding.decoded import FAULT, OWN, decoded_all
from sluice.sources.kafka.decoding.kept import AT, KEY, LEFT_OUT, VALUE, kept
from sluice.sources.kafka.decoding.plain_texts import plain_values
from sluice.sources.kafka.formats.records import FormatReader
from sluice.sources.spec import Source


def rows_of(
    session: SparkSession, spec: Source, messages: pa.Table, reader: FormatReader, at: Interval
) -> DataFrame:
    """Return the rows of messages that arrived at a moment, for the gate."""
    declared = session.createDataFrame([], ddl(spec)).schema.fields
    columns = [DecodedColumn(f.name, f.dataType, as_texts(f.dataType, session)) for f in declared]
    topic = spec.kafka.topic if spec.kafka else ""
    found = decoded_all(topic, columns, messages, reader)
    values = set()
    for nth, column in enumerate(columns):
        array, has_values = _best(found.column(nth).combine_chunks(), column)
        found = found.set_column(nth, column.name, array)
        values |= {column.name} if has_values else set()
    types = (c.type if c.name in values else c.texts for c in columns)
    fields = [*(StructField(c.name, t) for c, t in zip(columns, types, strict=True)), *OWN]
    rows = session.createDataFrame(found, StructType(fields))
    rows = rows.withColumn(KEPT, F.expr(kept(topic))).drop(AT, KEY, VALUE, LEFT_OUT)
    own = Texts({}, MARK)
    return _judged(of_texts(rows, spec, own, reason=FAULT, values=values), spec, at)


def _best(found: pa.Array, column: DecodedColumn) -> tuple[pa.Array, bool]:
    """Return a column's values and True, if all are plain and need no rules; else its texts."""
    if column.is_nested:
        return found, False
    if found.type == arrow_type(column.type):
        return found, True
    if pa.types.is_integer(found.type) and isinstance(column.type, IntegralType):
        with suppress(pa.ArrowInvalid):  # a number beyond the type
            return found.cast(arrow_type(column.type)), True
    texts = found.cast(pa.string())
    values = plain_values(texts, column.type)
    return (texts, False) if values is None else (values, True)


def _judged(rows: DataFrame, spec: Source, at: Interval) -> DataFrame:
    """Add the source's own objections, and the place of each row."""
    known = objected(rows, spec, at).withColumn(POSITION, F.col(ROW)).drop(BLOCK, ROW)
    return known.drop(OP) if spec.change else known
