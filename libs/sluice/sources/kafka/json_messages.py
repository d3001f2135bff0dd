"""Messages of JSON; numbers are kept as they were written."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sluice.sources.kafka.debezium import Envelope, Meaning
from sluice.sources.kafka.records import Unusable

SHOWN = 80  # characters of a field's name in a reason


class Number(str):
    """A number as it was written."""

    __slots__ = ()


def of_json(data: bytes) -> Any:
    """Return the value of a message. Raises Unusable unless it is one value of JSON."""
    try:
        return _PARSER.decode(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise Unusable("the message is not in UTF-8") from None
    except (ValueError, RecursionError):
        raise Unusable("the message is no JSON") from None


def bare(data: bytes) -> Any:
    """Return the value of a message, or its payload if Connect sent its schema beside it."""
    found = of_json(data)
    return found["payload"] if _has_schema(found) else found


def envelope(data: bytes) -> Envelope:
    """Return a change, with or without its schema beside it."""
    found = of_json(data)
    if not isinstance(found, Mapping):
        raise Unusable("the message is no object")
    if not _has_schema(found):
        return Envelope(found, {})
    if not isinstance(found["payload"], Mapping):
        raise Unusable("the message has no payload")
    return Envelope(found["payload"], _meanings(json.dumps(found["schema"]), "after"))


def key_of_envelope(data: bytes) -> Any:
    """Return a message's key, with the meanings of its columns if its schema is beside it."""
    found = of_json(data)
    if not _has_schema(found):
        return found
    if not isinstance(found["payload"], Mapping):
        return found["payload"]
    return Envelope(found["payload"], _meanings(json.dumps(found["schema"]), ""))


def written(value: Any) -> str:
    """Return a value as JSON."""
    if isinstance(value, Number):
        return value
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(k)}:{written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)


def _has_schema(found: Any) -> bool:
    return isinstance(found, Mapping) and found.keys() == {"schema", "payload"}


@lru_cache(maxsize=256)
def _meanings(schema: str, image: str) -> Mapping[str, Meaning]:
    """Return the meanings of the columns of an image; of a schema itself without one."""
    found = json.loads(schema) or {}
    parts = found.get("fields") or ()
    if image:
        parts = next((p.get("fields") or () for p in parts if p.get("field") == image), ())
    return {
        part["field"]: Meaning(part["name"], part.get("parameters") or {})
        for part in parts
        if part.get("name")
    }


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unusable(f"field {twice[:SHOWN]} stands twice")
    return found


_PARSER = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=Number, parse_int=Number, parse_constant=Number
)
