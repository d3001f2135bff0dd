"""Readers of messages by the declared format."""

from sluice.extras import require
from sluice.sources.kafka.formats.debezium.envelopes import debezium
from sluice.sources.kafka.formats.records import FormatReader, plain
from sluice.sources.topic import ValueFormat


def reader_of(value: ValueFormat, key: tuple[str, ...], table: str) -> FormatReader:
    """Return the reader of a source's messages. Raises UsageError if a registry is not known."""
    require("kafka", f"{table}, a Kafka topic,")
    if value.format == "protobuf":
        from sluice.sources.kafka.formats.protobuf.messages import protobuf_reader

        return protobuf_reader(value, key, table)
    if value.is_avro and not value.registry:
        from sluice.sources.kafka.formats.avro.files import avro_file_reader

        return avro_file_reader(value, key)
    if value.is_avro:
        from sluice.sources.kafka.formats.avro.registered import avro_reader

        return avro_reader(value, key, table)
    from sluice.sources.kafka.formats.debezium.columns import by_columns
    from sluice.sources.kafka.formats.json.columns import changes_of_json, columns_of_json
    from sluice.sources.kafka.formats.json.messages import (
        bare,
        envelope,
        key_of_envelope,
        rows_of_json,
    )

    if value.is_debezium:
        return debezium(envelope, key_of_envelope, key, by_columns(changes_of_json, key))
    return plain(bare, bare, key, rows_of_json, columns_of_json)
