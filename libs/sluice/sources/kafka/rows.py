"""Messages as rows of the declared columns, each with its reason, its identity and what it does.

A message's identity is its partition and offset, so a message that is read again gives the same
rows. In quarantine a row keeps its message whole.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sluice.declare.delivered_row import OP, REASON
from sluice.files.changes import unknown_word
from sluice.files.conversion import BLOCK, ROW, ddl
from sluice.files.here import as_texts
from sluice.files.json_texts import MARK
from sluice.files.marks import POSITION
from sluice.files.plain_texts import plain_values
from sluice.files.spelled import Texts
from sluice.files.texts import of_texts
from sluice.language.interval import Interval
from sluice.sources.delivery import time_reasons
from sluice.sources.kafka.broker import Message
from sluice.sources.kafka.columns import Column
from sluice.sources.kafka.decoded import FAULT, OWN, decoded_all
from sluice.sources.kafka.records import Reader
from sluice.sources.spec import Source


def rows_of(
    session: SparkSession, spec: Source, messages: Sequence[Message], reader: Reader, at: Interval
) -> DataFrame:
    """Return the rows of messages that arrived at a moment, for the gate."""
    declared = session.createDataFrame([], ddl(spec)).schema.fields
    columns = [Column(f.name, f.dataType, as_texts(f.dataType, session)) for f in declared]
    topic = spec.kafka.topic if spec.kafka else ""
    texts = decoded_all(topic, columns, messages, reader)
    values = dict(_values(texts, columns))
    for nth, column in enumerate(columns):
        if column.name in values:
            texts = texts.set_column(nth, column.name, values[column.name])
    types = (c.type if c.name in values else c.texts for c in columns)
    fields = [*(StructField(c.name, t) for c, t in zip(columns, types, strict=True)), *OWN]
    rows = session.createDataFrame(texts, StructType(fields))
    own = Texts({}, MARK)
    return _judged(of_texts(rows, spec, own, reason=FAULT, values=values), spec, at)


def _values(texts: pa.Table, columns: Sequence[Column]) -> Iterator[tuple[str, pa.Array]]:
    """Yield the columns that need no rules, because all of their texts are plain."""
    for column in columns:
        if column.is_nested:
            continue
        values = plain_values(texts[column.name].combine_chunks(), column.type)
        if values is not None:
            yield column.name, values


def _judged(rows: DataFrame, spec: Source, at: Interval) -> DataFrame:
    """Add the source's own objections, and the place of each row."""
    reasons = [F.col(REASON), *time_reasons(spec, at)]
    if spec.change:
        reasons.append(unknown_word(spec.change))
    known = rows.withColumn(REASON, F.coalesce(*reasons))
    known = known.withColumn(POSITION, F.col(ROW)).drop(BLOCK, ROW)
    return known.drop(OP) if spec.change else known
