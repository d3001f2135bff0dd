"""Explanation of a row: the commit that wrote its values, and the rows that it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from sluice.language.names import RESERVED_PREFIX
from sluice.operate.lineage.delivered import Delivered, delivered
from sluice.operate.lineage.walk import lineage
from sluice.read.changelog import Changelog
from sluice.read.conditions.key_order import KeyRange
from sluice.read.lake import Lake
from sluice.read.naming import Given, row_of
from sluice.read.origin import Origin, origin
from sluice.read.stored.scan import Scan


@dataclass(frozen=True)
class ContributingRows:
    """Rows of one table that a row comes from, and their deliveries.

    Delivered rows have their hidden columns: interval, position and identity. `untraced`: why their
    origin can't be known; else ''.
    """

    table: str
    version: int | None
    rows: pa.Table
    deliveries: tuple[Delivered, ...]
    untraced: str = ""


@dataclass(frozen=True)
class Why:
    """One row; `origin` is the commit that last changed it."""

    changelog: Changelog
    row: KeyRange
    origin: Origin

    @cached_property
    def sources(self) -> list[ContributingRows]:
        """Rows that it comes from, the nearest tables first; none if it is gone.

        Raises HistoryLost if a version that it was made from is gone, and UsageError if the rows
        can't be found without Spark.
        """
        return sources_of(self.changelog, self.row)


def why(
    lake: Lake,
    name: str,
    /,
    *key: Any,
    partition: Mapping[str, Any] | None = None,
    when: str | None = None,
    version: int | None = None,
    **named: Any,
) -> Why | None:
    """Return the origin of a row, or the last change of its column `when`; None if it never
    existed.

    A row is named by its key, in order or by its columns, or by the options of `sluice why`.
    """
    changelog = Changelog.open(lake, name, version)
    row = row_of(changelog, Given.of(key, partition, named))
    found = origin(changelog, row, when) if row else None
    return Why(changelog, row, found) if row and found else None


def sources_of(changelog: Changelog, row: KeyRange) -> list[ContributingRows]:
    """Return what a row comes from, like `Why.sources`."""
    table, stored = changelog.table, changelog.lake.project.graph.table(changelog.name)
    scan = Scan(table.snapshot, (row,))
    parts = list(scan.unordered(tuple(table.snapshot.schema.names)))
    project = changelog.lake.project
    sources = []
    for part in lineage(project, stored, table.version, pa.concat_tables(parts)) if parts else ():
        brought = tuple(delivered(project, part))
        rows = _shown(part.rows, bool(brought))
        sources.append(ContributingRows(part.table, part.version, rows, brought, part.untraced))
    return sources


def _shown(rows: pa.Table, with_marks: bool) -> pa.Table:
    hidden = () if with_marks else (RESERVED_PREFIX,)
    return rows.select([name for name in rows.column_names if not name.startswith(hidden)])
