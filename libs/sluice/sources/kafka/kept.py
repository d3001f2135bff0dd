"""Messages as the quarantine keeps them: whole, as JSON, with key and value in base64."""

import json
from base64 import b64decode
from binascii import b2a_base64

from sluice.sources.kafka.broker import Message


def kept_of(topic: str, message: Message) -> str:
    """Return a message as the quarantine keeps it; one that was too large without its bytes."""
    left_out = f', "bytes": {message.left_out}' if message.left_out else ""
    return (
        f'{{"topic": {topic}, "partition": {message.partition}, "offset": {message.offset}, '
        f'"timestamp": {message.at}, "key": {_base64(message.key)}, '
        f'"value": {_base64(message.value)}{left_out}}}'
    )


def message_of(kept: str) -> Message:
    """Return the message that the quarantine keeps."""
    found = json.loads(kept)
    key, value = (None if found[n] is None else b64decode(found[n]) for n in ("key", "value"))
    place = found["partition"], found["offset"], found["timestamp"]
    return Message(*place, key, value, found.get("bytes", 0))


def _base64(data: bytes | None) -> str:
    return "null" if data is None else f'"{b2a_base64(data, newline=False).decode()}"'
