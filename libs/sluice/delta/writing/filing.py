"""The layout of a table: its rows by key in small row groups, so that small reads open few of them.

A table is filed in slices: its partitions, or the whole table. A slice is in order if its row
groups are small and their keys don't overlap. Later rows of batches are in other files until upkeep
files it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.changes import Direction
from sluice.delta.log.files import active_files, file_name, kept_rows
from sluice.delta.log.opened import open_version
from sluice.delta.places.delta_rs import files_below
from sluice.delta.reading.local import to_spark_types
from sluice.delta.writing import own_commits
from sluice.language.names import CARRIED, RESERVED_PREFIX
from sluice.limits import Limits

WORN = 0.2  # share of marked rows
ValueBounds = tuple[Any, Any]


@dataclass(frozen=True)
class Slice:
    """One partition, by its number, or a whole table that has none.

    `rows`: row counts of the files, marked rows included; `lost`: how many of them are marked;
    `bytes`: those of all files. The order of up to `unordered_rows` makes no difference to readers:
    their files are combined without Spark.
    """

    unordered_rows: ClassVar[int] = 5_000

    number: int | None
    paths: tuple[str, ...]
    rows: tuple[int, ...]
    lost: tuple[int, ...] = ()
    bytes: int = 0

    @property
    def gone(self) -> int:
        """Marked rows of all files."""
        return sum(self.lost)

    @property
    def folder(self) -> str:
        """Return the folder of its files within the table's."""
        return self.paths[0].rpartition("/")[0]

    def usual_files(self, limits: Limits) -> int:
        """Return the number of files that it may have after it was filed by key, in pieces."""
        usual = -(-self.row_count // self.file_rows(limits))
        return max(1, usual, 2 * self.bytes // limits.piece_bytes)

    def file_rows(self, limits: Limits) -> int:
        """Return how many rows its files should have."""
        if self.number is not None:
            return limits.slice_file_rows
        return limits.of_rows(self.row_count, len(self.paths)).file_rows

    @property
    def row_count(self) -> int:
        """Rows in all of its files."""
        return sum(self.rows)

    @property
    def is_small(self) -> bool:
        """True if it has too few rows for their order to matter."""
        return self.row_count <= self.unordered_rows

    def lumps(self, limits: Limits) -> list[str]:
        """Return the files with the rows of two, as a MERGE that rewrites several leaves them."""
        if self.number is not None or self.is_small:
            return []
        most = 2 * limits.of_rows(self.row_count).file_rows
        return [path for path, rows in zip(self.paths, self.rows, strict=True) if rows > most]

    def may_be_in_order(self, limits: Limits) -> bool:
        """True if none of its files is larger than those of a table that had more rows."""
        return max(self.rows) <= 2 * self.file_rows(limits)

    @property
    def is_worn(self) -> bool:
        """True if enough rows are marked to slow down scans."""
        return self.gone > WORN * self.row_count

    def has_worn_file(self, limits: Limits) -> bool:
        """True if a file of a usual size has so many marked rows."""
        files = zip(self.rows, self.lost, strict=False)
        return any(2 * rows >= limits.file_rows and gone > WORN * rows for rows, gone in files)


def slices_of(table: DeltaTable) -> list[Slice]:
    """Return the slices of a table, in the order of their numbers."""
    partitions = table.metadata().partition_columns
    number = f"partition.{partitions[0]}" if partitions else None
    gone = {name: mask.false_count for name, mask in kept_rows(table).items()}
    found: dict[int | None, list[tuple[str, int, int]]] = {}
    for file in active_files(table).to_pylist():
        known = found.setdefault(file[number] if number else None, [])
        known.append((file["path"], file.get("num_records") or 0, file["size_bytes"]))
    return [
        Slice(
            n,
            tuple(path for path, _, _ in files),
            tuple(rows for _, rows, _ in files),
            tuple(gone.get(file_name(path), 0) for path, _, _ in files),
            sum(size for _, _, size in files),
        )
        for n, files in sorted(found.items(), key=lambda item: item[0] or 0)
    ]


def is_in_order(uri: str, files: Sequence[str], column: str) -> bool:
    """True if the row groups of these files are small and don't overlap in a column.

    Opens the files' footers. A column without statistics counts as not overlapping.
    """
    filesystem = files_below(uri)
    spans: list[ValueBounds] = []
    for path in files:
        with filesystem.open_input_file(path) as source:
            footer = pq.read_metadata(source)
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        if any(group.num_rows > own_commits.GROUP_ROWS for group in groups):
            return False
        chunks = (group.column(i) for group in groups for i in range(group.num_columns))
        known = [c.statistics for c in chunks if c.path_in_schema == column and c.statistics]
        spans += [(found.min, found.max) for found in known if found.has_min_max]
    return all(one[1] <= other[0] for one, other in pairwise(sorted(spans)))


def by_key(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Sort the rows of a small commit by the key columns with a meaning and an order."""
    types = {field.name: field.type for field in rows.schema}
    shown = [n for n in _visible(key) if n in types and not pa.types.is_nested(types[n])]
    return to_spark_types(rows).sort_by([(name, "ascending") for name in shown]) if shown else rows


def in_order(
    rows: DataFrame, uri: str, key: Sequence[str], count: int, limits: Limits
) -> DataFrame:
    """Arrange `count` new rows of a table by the key columns with a meaning."""
    shown = [Direction(name) for name in _visible(key)]
    partitions = open_version(uri).metadata().partition_columns
    if not shown and not partitions:
        return rows
    return arrange_in_files(rows, shown, partitions, files_for(count, limits))


def files_for(count: int, limits: Limits) -> int:
    """Return how many files `count` rows of a table without partitions should fill."""
    return -(-count // limits.of_rows(count).file_rows)


def arrange_in_files(
    rows: DataFrame, order: Sequence[Direction], partition_by: Sequence[str], files: int
) -> DataFrame:
    """Lay out rows for writing, in order: one file for each slice, or `files` in all."""
    by = [F.col(f"`{d.column}`").desc() if d.descending else F.col(f"`{d.column}`") for d in order]
    parts = [F.col(f"`{name}`") for name in partition_by]
    if parts:
        return rows.repartition(*parts).sortWithinPartitions(*parts, *by)
    spread = rows.repartitionByRange(files, *by) if files > 1 else rows.coalesce(1)
    return spread.sortWithinPartitions(*by)


def _visible(key: Sequence[str]) -> list[str]:
    return [
        name for name in key if name.startswith(CARRIED) or not name.startswith(RESERVED_PREFIX)
    ]
