"""A dimension as a key-value store; of a history, a key's current row."""

from collections.abc import Callable, Mapping
from typing import Any

from sluice.declare.table import Table
from sluice.read.lake import Lake
from sluice.read.ordered.keyed import KeyedTable

VERBS: Mapping[str, Callable[..., Any]] = {}


def opened(
    lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
) -> KeyedTable:
    """Open the dimension at that version, or at its head."""
    current = "is_current" if table.spec.has_history else None
    return lake.stored(table, version, backward_iteration=backward_iteration, current=current)
