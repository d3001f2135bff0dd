"""A top-k for its readers: by key, and as rankings."""

from collections.abc import Callable, Mapping
from typing import Any

from sluice.declare.table import Table
from sluice.kinds.topk.ranking import PartitionValue, Ranking, Ranks, shown_first
from sluice.kinds.topk.spec import TopK
from sluice.read.lake import Lake
from sluice.read.ordered.keyed import KeyedTable


def opened(
    lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
) -> KeyedTable:
    """Open a top-k as a key-value store."""
    assert isinstance(table.spec, TopK)
    first = shown_first(table.spec)
    return lake.stored(table, version, backward_iteration=backward_iteration, first=first)


def ranking(lake: Lake, name: str, *, version: int | None = None) -> Ranking:
    """Open a top-k as rankings."""
    return Ranking.open(lake, name, version)


def top(
    lake: Lake,
    name: str,
    partition: Mapping[str, Any] | None = None,
    *,
    version: int | None = None,
) -> Ranks | dict[PartitionValue, Ranks]:
    """Return the map rank -> row of one partition, or partition -> rank -> row."""
    return ranking(lake, name, version=version).top(partition)


VERBS: Mapping[str, Callable[..., Any]] = {"ranking": ranking, "top": top}
