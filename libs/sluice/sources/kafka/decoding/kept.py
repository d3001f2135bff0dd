"""Messages as the quarantine keeps them: whole, as JSON, with key and value in base64."""

import json
from base64 import b64decode

from sluice.files.conversion import BLOCK, ROW
from sluice.gate.rules.sql import text
from sluice.sources.kafka.client.message import Message

AT, KEY, VALUE, LEFT_OUT = "_sluice_at", "_sluice_key", "_sluice_value", "_sluice_left_out"


def kept(topic: str) -> str:
    """Return SQL for a message of the topic as the quarantine keeps it, by its parts in columns."""
    parts = {
        "topic": text(json.dumps(topic)),
        "partition": f"string({BLOCK})",
        "offset": f"string({ROW})",
        "timestamp": f"string({AT})",
        "key": _base64(KEY),
        "value": _base64(VALUE),
    }
    named = ", ', ', ".join(f"""'"{name}": ', {part}""" for name, part in parts.items())
    left_out = f"""coalesce(concat(', "bytes": ', string({LEFT_OUT})), '')"""
    return f"concat('{{', {named}, {left_out}, '}}')"


def _base64(column: str) -> str:
    return f"""coalesce(concat('"', base64({column}), '"'), 'null')"""


def message_of(kept: str) -> Message:
    """Return the message that the quarantine keeps."""
    found = json.loads(kept)
    key, value = (None if found[n] is None else b64decode(found[n]) for n in ("key", "value"))
    place = found["partition"], found["offset"], found["timestamp"]
    return Message(*place, key, value, found.get("bytes", 0))
