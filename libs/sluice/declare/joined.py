"""Dimensions that a declaration joins: a list `join`, each with its `dimension` and an `on`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sluice.declare.table_spec import Reference


def joined_dimensions(names: Iterable[str]) -> Iterator[Reference]:
    """Yield the dimensions that a list of joins names."""
    for i, name in enumerate(names):
        yield _reference(i, name)


def joined_dimensions_as_written(data: Mapping[str, Any]) -> Iterator[Reference]:
    """Yield the dimensions joined by a declaration with mistakes, if they can be read."""
    joins = data.get("join")
    for i, join in enumerate(joins if isinstance(joins, list) else ()):
        if isinstance(join, dict) and isinstance(join.get("dimension"), str):
            yield _reference(i, join["dimension"])


def _reference(nth: int, name: str) -> Reference:
    return Reference(("join", nth, "dimension"), name, "dimensions", explains=("join", nth, "on"))
