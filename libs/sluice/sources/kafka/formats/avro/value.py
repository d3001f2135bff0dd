"""One value of Avro, of a known schema."""

import io
from typing import Any

from fastavro import schemaless_reader

from sluice.sources.kafka.formats.records import Unusable


def decoded_from(start: int, schema: Any, data: bytes) -> Any:
    """Return the value that begins there. Raises Unusable unless it fits the schema completely."""
    rest = io.BytesIO(data)
    rest.seek(start)
    try:
        found = schemaless_reader(rest, schema, None)
    except Exception as fault:  # noqa: BLE001 # fastavro raises whatever its decoders do
        raise Unusable(f"the message does not fit its schema: {fault!r:.200}") from None
    if rest.tell() < len(data):
        raise Unusable("the message is longer than its schema allows")
    return found
