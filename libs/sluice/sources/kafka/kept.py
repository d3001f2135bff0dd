"""Messages as the quarantine keeps them: whole, as JSON, with key and value in base64."""

import json
from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sluice.sources.kafka.broker import Message


def kept_of(topic: str, message: Message) -> str:
    """Return a message as the quarantine keeps it; one that was too large without its bytes."""
    left_out = f', "bytes": {message.left_out}' if message.left_out else ""
    return (
        f'{{"topic": {topic}, "partition": {message.partition}, "offset": {message.offset}, '
        f'"timestamp": {message.at}, "key": {_base64(message.key)}, '
        f'"value": {_base64(message.value)}{left_out}}}'
    )


def kept_all(topic: str, messages: Sequence[Message]) -> pa.Array:
    """Return what `kept_of` does of each message, at once."""
    if not messages or any(message.left_out for message in messages):
        return pa.array([kept_of(topic, message) for message in messages], pa.string())
    partitions, offsets, times, keys, values = zip(*(m[:5] for m in messages), strict=True)
    numbers = (pa.array(n, pa.int64()).cast(pa.string()) for n in (partitions, offsets, times))
    names = ("partition", "offset", "timestamp", "key", "value")
    parts = [*numbers, _base64s(keys), _base64s(values)]
    named = [
        part for pair in zip((f', "{n}": ' for n in names), parts, strict=True) for part in pair
    ]
    return pc.binary_join_element_wise(f'{{"topic": {topic}', *named, "}", "")


def _base64s(data: Sequence[bytes | None]) -> pa.Array:
    texts = [None if one is None else b2a_base64(one, newline=False) for one in data]
    quoted = pc.binary_join_element_wise(
        '"', pa.array(texts, pa.binary()).cast(pa.string()), '"', ""
    )
    return pc.fill_null(quoted, "null")


def message_of(kept: str) -> Message:
    """Return the message that the quarantine keeps."""
    found = json.loads(kept)
    key, value = (None if found[n] is None else b64decode(found[n]) for n in ("key", "value"))
    place = found["partition"], found["offset"], found["timestamp"]
    return Message(*place, key, value, found.get("bytes", 0))


def _base64(data: bytes | None) -> str:
    return "null" if data is None else f'"{b2a_base64(data, newline=False).decode()}"'
