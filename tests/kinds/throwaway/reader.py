"""Reads of it: by key, and its highest row."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.kinds.throwaway.spec import Above

from sluice.declare.table import Table
from sluice.language.row import Row
from sluice.read.lake import Lake
from sluice.read.ordered.keyed import KeyedTable


def opened(
    lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
) -> KeyedTable:
    return lake.stored(table, version, backward_iteration=backward_iteration)


def highest(lake: Lake, name: str) -> Row:
    table, spec = lake.of_kind(name, Above, "highest")
    return max(lake.stored(table).read(), key=lambda row: row[spec.column])


VERBS: Mapping[str, Callable[..., Any]] = {"highest": highest}
