"""A top-k as its readers open it: by key, as rankings, and its changelog as whole rankings."""

from collections.abc import Callable, Mapping
from typing import Any

from sluice.kinds.topk.maps import Maps
from sluice.kinds.topk.ranking import Partition, Ranking, Ranks
from sluice.serving.changes import Changelog
from sluice.serving.keyed import KeyedTable
from sluice.serving.lake import Lake
from sluice.specs.table import Table


def opened(
    lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
) -> KeyedTable:
    """A top-k as a key-value store."""
    return lake.stored(table, version, backward_iteration=backward_iteration)


def ranking(lake: Lake, name: str, *, version: int | None = None) -> Ranking:
    """A top-k as rankings."""
    return Ranking.open(lake, name, version)


def top(
    lake: Lake,
    name: str,
    partition: Mapping[str, Any] | None = None,
    *,
    version: int | None = None,
) -> Ranks | dict[Partition, Ranks]:
    """The map rank -> row of one partition, or partition -> rank -> row."""
    return ranking(lake, name, version=version).top(partition)


def maps(
    lake: Lake, changelog: Changelog, *, from_version: int | None = None, run: str | None = None
) -> Maps:
    """The whole rankings that a top-k's changelog touched."""
    return Maps(changelog, ranking(lake, changelog.name), from_version, run)


VERBS: Mapping[str, Callable[..., Any]] = {"ranking": ranking, "top": top, "maps": maps}
