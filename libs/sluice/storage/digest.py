"""The content of rows as one number that does not depend on their order, nor on files or versions.

Each row is hashed, the hashes are added up. So two tables have the same digest exactly if they hold
the same rows equally often, what a change feed brings and takes away can be added and subtracted,
and no more than a page of rows is held at a time. Cost: about 10 microseconds a row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

_BYTES = 16
_MODULUS = 1 << (8 * _BYTES)


@dataclass(frozen=True)
class Digest:
    """How many rows, and the sum of their hashes."""

    rows: int = 0
    total: int = 0

    def __add__(self, other: "Digest") -> "Digest":
        return Digest(self.rows + other.rows, (self.total + other.total) % _MODULUS)

    def __sub__(self, other: "Digest") -> "Digest":
        return Digest(self.rows - other.rows, (self.total - other.total) % _MODULUS)

    def __str__(self) -> str:
        return f"{self.rows}:{self.total:032x}"


def digest_of(rows: Iterable[Mapping[str, Any]]) -> Digest:
    """The digest of rows as Python has them. A column that is null counts as one that is not there.

    So rows from before a column was added are the same afterwards.
    """
    count, total = 0, 0
    for row in rows:
        count, total = count + 1, total + _hash(row)
    return Digest(count, total % _MODULUS)


def _hash(row: Mapping[str, Any]) -> int:
    told = sorted((name, canonical(value)) for name, value in row.items() if value is not None)
    return int.from_bytes(blake2b(repr(told).encode(), digest_size=_BYTES).digest())


def canonical(value: Any) -> Any:
    """A value whose `repr` is the same for equal ones: -0.0 is 0.0, all NaN are one, times UTC."""
    match value:
        case float():
            return value + 0.0
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
        case dict():
            return sorted((name, canonical(v)) for name, v in value.items())
        case list() if value and all(isinstance(entry, tuple) for entry in value):
            return sorted(map(repr, map(canonical, value)))  # a map: Arrow hands out its entries
        case list() | tuple():
            return [canonical(v) for v in value]
        case _:
            return value
