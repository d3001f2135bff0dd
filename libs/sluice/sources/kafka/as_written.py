"""Values of messages as they were written."""

import json
from typing import Any


class Number(str):
    """A number as it was written."""

    __slots__ = ()


def written(value: Any) -> str:
    """Return a value as JSON."""
    if isinstance(value, Number):
        return value
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)
