"""Messages as rows of the declared columns, each with its reason, its identity and what it does.

A message's identity is its partition and offset, so reading it again gives the same rows.

Columns whose texts are all plain are converted by Arrow at once. `language.typed.spellings` accepts
more. A column with any other text is left to the slower rules in SQL, which give a reason for each
text that they reject.
"""

from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegralType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sluice.declare.declared import KEPT
from sluice.extras import require
from sluice.files.conversion import ddl
from sluice.files.here import as_texts
from sluice.files.json import MARK
from sluice.files.spelled import Texts, of_texts
from sluice.interpreter.values.arrow_conversion import arrow_type
from sluice.sources.kafka.decoding import (
    AT,
    FAULT,
    KEY,
    LEFT_OUT,
    OWN,
    VALUE,
    DecodedColumn,
    decode_all,
    kept_as_sql,
)
from sluice.sources.kafka.formats.debezium import debezium
from sluice.sources.kafka.formats.records import FormatReader, plain, read_message
from sluice.sources.spec import Source, ValueFormat


def rows_of(
    session: SparkSession, spec: Source, messages: pa.Table, reader: FormatReader
) -> DataFrame:
    """Return the rows of messages, with BLOCK and ROW as their place."""
    declared = session.createDataFrame([], ddl(spec)).schema.fields
    columns = [DecodedColumn(f.name, f.dataType, as_texts(f.dataType, session)) for f in declared]
    topic = spec.kafka.topic if spec.kafka else ""
    found = decode_all(topic, columns, messages, reader)
    values = set()
    for nth, column in enumerate(columns):
        array, has_values = _convert_plain(found.column(nth).combine_chunks(), column)
        found = found.set_column(nth, column.name, array)
        values |= {column.name} if has_values else set()
    types = (c.type if c.name in values else c.texts for c in columns)
    fields = [*(StructField(c.name, t) for c, t in zip(columns, types, strict=True)), *OWN]
    rows = session.createDataFrame(found, StructType(fields))
    rows = rows.withColumn(KEPT, F.expr(kept_as_sql(topic))).drop(AT, KEY, VALUE, LEFT_OUT)
    own = Texts({}, MARK)
    return of_texts(rows, spec, own, reason=FAULT, values=values)


def _convert_plain(found: pa.Array, column: DecodedColumn) -> tuple[pa.Array, bool]:
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


DAY = "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
LOCAL = rf"{DAY}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?"
NUMBER = "-?[0-9]{1,18}"
PATTERNS: dict[type[DataType], str] = {
    BooleanType: "true|false",
    DateType: DAY,
    DoubleType: r"-?[0-9]{1,15}(\.[0-9]{1,15})?",
    TimestampNTZType: LOCAL,
    TimestampType: f"{LOCAL}Z?",
}


def plain_values(texts: pa.Array, type_: DataType) -> pa.Array | None:
    """Return the values of texts; None unless all of them are plain and within the type."""
    if isinstance(type_, StringType):
        return texts
    pattern = _pattern(type_)
    fits = pattern and pc.match_substring_regex(texts, rf"\A(?:{pattern})\z")
    if not fits or not pc.all(fits, min_count=0).as_py():
        return None
    try:
        if isinstance(type_, TimestampType):
            local = pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("us"))
            return local.view(arrow_type(type_))
        return texts.cast(arrow_type(type_))
    except pa.ArrowInvalid:  # the 30th of February, or a number beyond the type
        return None


def _pattern(type_: DataType) -> str:
    """Return the pattern of plain texts; '' of a type that has none."""
    if isinstance(type_, DecimalType):
        whole, places = type_.precision - type_.scale, type_.scale
        rest = rf"(\.[0-9]{{1,{places}}})?" if places else ""
        return f"-?[0-9]{{1,{whole}}}{rest}" if whole else f"-?0{rest}"
    return NUMBER if isinstance(type_, IntegralType) else PATTERNS.get(type(type_), "")


def reader_of(value: ValueFormat, key: tuple[str, ...], table: str) -> FormatReader:
    """Return the reader of a source's messages. Raises UsageError if a registry is not known."""
    require("kafka", f"{table}, a Kafka topic,")
    if value.format == "bytes":
        return FormatReader(read_message)
    if value.format == "protobuf":
        from sluice.sources.kafka.formats.protobuf import protobuf_reader

        return protobuf_reader(value, key, table)
    if value.is_avro and not value.registry:
        from sluice.sources.kafka.formats.avro import avro_file_reader

        return avro_file_reader(value, key)
    if value.is_avro:
        from sluice.sources.kafka.formats.avro import avro_reader

        return avro_reader(value, key, table)
    from sluice.sources.kafka.formats.debezium import by_columns
    from sluice.sources.kafka.formats.json import (
        changes_of_json,
        columns_of_json,
        envelope,
        key_of_envelope,
        read_bare,
        rows_of_json,
    )

    if value.is_debezium:
        return debezium(envelope, key_of_envelope, key, by_columns(changes_of_json, key))
    return plain(read_bare, read_bare, key, rows_of_json, columns_of_json)
