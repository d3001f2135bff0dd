"""Declarations of what is delivered: columns, topics, and the row that constants are joined to."""

from collections.abc import Mapping
from os import environ
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import StructField, StructType

from sluice.cache import cache_folder
from sluice.language.typed.types import canonical
from sluice.spark_pipelines.expressions import NotTranslated
from sluice.spark_pipelines.texts import column_name


def declared_columns(schema: StructType) -> dict[str, Any]:
    """Return the fields that declare a schema: its columns, and names that can't be theirs.

    Raises NotTranslated if two columns would have one name, or one has a type that none may have.
    """
    names = {column_name(f.name): f.name for f in schema}
    if lost := {f.name for f in schema} - {*names.values()}:
        raise NotTranslated(f"the name of column {min(lost)!r} is that of another one, in a table")
    types = map(_declared_type, schema)
    renamed = {new: old for new, old in names.items() if new != old}
    ddl = ", ".join(f"{name} {type_}" for name, type_ in zip(names, types, strict=True))
    return {"schema": ddl, **({"names": renamed} if renamed else {})}


def _declared_type(field: StructField) -> str:
    try:
        return canonical(field.dataType.simpleString())
    except ValueError as error:
        raise NotTranslated(f"column {field.name!r}: {error}") from None


MESSAGE = "key BINARY, value BINARY, partition INT, offset BIGINT, timestamp TIMESTAMP"
OF_TOPICS = {"subscribe", "kafka.bootstrap.servers", "startingoffsets", "kafka.isolation.level"}
OF_ERRORS = {"failondataloss", "minpartitions"}  # change no result, or what Sluice always refuses


def declared_topic(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the source of a topic's messages, by the options of Spark's reader.

    Raises ValueError for what a source can't have.
    """
    given = {key.lower(): value for key, value in options.items()}
    if unknown := sorted(given.keys() - OF_TOPICS - OF_ERRORS):
        raise ValueError(
            f"the option {unknown[0]!r} of a topic is not supported: declare the topic as a source "
            "in YAML, with a connection that has the client's settings"
        )
    topic, servers = given.get("subscribe", ""), given.get("kafka.bootstrap.servers", "")
    if not topic or "," in topic or not servers:
        raise ValueError("a stream of Kafka has one topic as `subscribe`, and its servers")
    start = given.get("startingoffsets", "latest")
    if start not in ("earliest", "latest"):
        raise ValueError(f"startingOffsets {start!r} is not supported: earliest or latest")
    isolation = given.get("kafka.isolation.level", "read_uncommitted")
    kafka = {"topic": topic, "servers": servers, "start": start, "isolation": isolation}
    return {"kafka": kafka, "value": {"format": "bytes"}, "schema": MESSAGE}


def one_row() -> dict[str, Any]:
    """Return the dimension of one row, to which constant rows are joined: a file in the cache."""
    file = cache_folder(environ) / "constants" / "one_row.parquet"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"one": [1]}), file)
    return {"path": str(file), "format": "parquet", "schema": "one BIGINT", "key": ["one"]}
