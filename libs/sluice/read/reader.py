"""Module of a kind that opens its stored tables for readers."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from sluice.declare.table import Table
    from sluice.read.key_values import KeyValues
    from sluice.read.lake import Lake


class Reader(Protocol):
    """Module `reader`.

    `VERBS`: further ways to read, by their names. Each takes the lake first, and is a method of it.
    """

    VERBS: Mapping[str, Callable[..., Any]]

    def opened(
        self, lake: "Lake", table: "Table", version: int | None, *, backward_iteration: bool
    ) -> "KeyValues":
        """Return the table as a key-value store, at that version or its head."""
        ...
