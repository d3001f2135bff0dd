"""Rows that a batch has found in a large table, kept until its commit.

The commit marks those that the batch changes, and its feed shows their values, without a second
search.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from sluice.delta.log.opened import CommitCache, commit_of

WantedValues = Mapping[str, pa.ChunkedArray]  # by column, the wanted values
FOUND_BYTES = 32_000_000  # of Arrow
Pages = Iterable[tuple[Path, pa.Table]]  # rows by file, with their numbers
ROW = "_sluice_row"  # the number of a row in its file
COMPARED_ROWS = 50_000  # at a time
Of = TypeVar("Of")


class TypeMismatch(Exception):
    """A file has columns of other types than its table, so polars can't search it."""


@dataclass(frozen=True)
class FoundRows:
    """All rows of one version whose values are among those wanted, with their numbers, by file."""

    wanted: WantedValues
    pages: Mapping[Path, pa.Table]

    @property
    def bytes(self) -> int:
        return sum(held.nbytes for held in (*self.pages.values(), *self.wanted.values()))

    @property
    def is_empty(self) -> bool:
        return not any(page.num_rows for page in self.pages.values())

    def covers(self, values: WantedValues) -> bool:
        """True if every row with these values was wanted."""
        return all(
            name in values
            and values[name].type == some.type
            and pc.all(pc.is_in(values[name], value_set=pc.unique(some)), min_count=0).as_py()
            for name, some in self.wanted.items()
        )


_found: CommitCache[FoundRows] = CommitCache(FOUND_BYTES, lambda found: found.bytes)


def keep(uri: str, version: int, found: FoundRows) -> None:
    """Keep the rows found in a version of a table, unless there are many or none."""
    if not found.is_empty:
        _found.keep(commit_of(uri, version), found)


def take(uri: str, version: int, values: WantedValues) -> Pages | None:
    """Return pages that hold all rows with these values, by file; None if they are not known.

    The pages are then forgotten.
    """
    found = _found.take(commit_of(uri, version))
    return found.pages.items() if found and found.covers(values) else None


def gather(pages: Iterable[tuple[Of, pa.Table]]) -> Iterator[list[tuple[Of, pa.Table]]]:
    """Yield pages whose rows are compared together, because each comparison has a cost."""
    some, count = list[tuple[Of, pa.Table]](), 0
    for one in pages:
        some.append(one)
        count += one[1].num_rows
        if count > COMPARED_ROWS:
            yield some
            some, count = [], 0
    if some:
        yield some
