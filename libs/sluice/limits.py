"""Sizes above which work takes another path, such as Spark or a scan instead of this process.

No limit changes a row of any table. Each has one field, named for what it bounds, with its unit. A
project passes them from loading to all that ask. Tests pass smaller ones, so that small data takes
the paths of large data.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

MANY_FILES = 32
WHOLE = 4  # times the memory that a batch takes for each byte of its files
MEMORY = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_memory() -> int:
    """Return the bytes of memory of this machine, or of the container that it is."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in MEMORY:
        with suppress(OSError, ValueError):
            most = min(most, int(Path(file).read_text(encoding="ascii")))
    return most


@dataclass(frozen=True)
class Limits:
    """Inclusive upper bounds: up to these sizes, work takes the path for small data."""

    computed_here_bytes: int = 256_000_000
    """Files of a batch's news, or of one table that it needs, without Spark; Spark takes more.

    Where Spark may not use the store, a batch that needs more is refused.
    """

    held_bytes: int = 192_000_000
    """Rows in Arrow that such a batch reads of all tables; beyond, Spark begins the batch again.

    The process takes three to seven times that, beside 160 MB for itself.
    """

    reread_rows: int = 2_000_000
    """Rows of one table that such a batch reads again for touched groups; Spark takes more."""

    read_here_bytes: int = 500_000
    """Files of a table or a feed that this process reads for Spark; it scans larger ones itself."""

    handed_rows: int = 100_000
    """Rows that this process finds in such a table and hands over; Spark scans for more.

    A batch that this process computes finds twenty times as many before it reads the whole table.
    """

    searched_bytes: int = 8_000_000_000
    """Files of a table that it searches for them; Spark scans larger tables."""

    few_tasks_bytes: int = 8_000_000
    """Files that Spark reads in few tasks; it spreads more over all cores."""

    collected_bytes: int = 64_000_000
    """Files of a table that a command looks through, or of a batch whose result Spark hands over.

    Larger ones are looked through by a sweep alone, and written by Spark.
    """

    file_rows: int = 100_000
    """Rows per file of a table without slices: those that a change of one key rewrites."""

    large_file_rows: int = 500_000
    """Rows per file of such a table if it would have more than 32 files."""

    slice_file_rows: int = 5_000_000
    """Rows per file of a slice that is filed again; more are cut into several files."""

    merged_bytes: int = 8_000_000
    """Files with changed keys that a small commit rewrites; in more, it marks the changed rows."""

    marked_share: float = 0.1
    """Share of the rows of those files that it marks; of more, it rewrites the files."""

    small_files: int = 8
    """Number of small files, each with less than half of `file_rows`, that such a commit joins."""

    piece_bytes: int = 32_000_000
    """Files, or parts of them, that one commit of upkeep reads and writes; more take several."""

    @classmethod
    def of_machine(cls, memory: int) -> Self:
        """Return the limits with so many bytes of memory: four times as much from 24 GB on."""
        times = min(max(memory / 6_000_000_000, 1.0), 4.0)
        here, held = int(cls.computed_here_bytes * times), int(cls.held_bytes * times)
        return cls(computed_here_bytes=here, held_bytes=held)

    @property
    def delivered_bytes(self) -> int:
        """Files of a delivery or of an expected table's changes, which are held whole."""
        return self.computed_here_bytes // WHOLE

    def for_weight(self, weight: int) -> Self:
        """Return the limits of a batch whose rows take so many times the memory of others."""
        here, held = self.computed_here_bytes // weight, self.held_bytes // weight
        return replace(self, computed_here_bytes=here, held_bytes=held)

    def of_process(self) -> Self:
        """Return the limits of a batch that this process computes: no row is handed over."""
        return replace(self, handed_rows=20 * self.handed_rows)

    def of_rows(self, rows: int, files: int | None = None) -> Self:
        """Return the limits of the files of a table without slices that has so many rows.

        `files`: those that it has now. If they are large ones, they stay so until the table has
        lost half of its rows.
        """
        is_large = files is not None and rows > 2 * files * self.file_rows
        many = MANY_FILES // 2 if is_large else MANY_FILES
        return (
            replace(self, file_rows=self.large_file_rows) if rows > many * self.file_rows else self
        )
