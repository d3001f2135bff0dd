"""Rows that a batch has found in a large table, kept until its commit.

The commit marks those that the batch changes, and its feed shows their values, without a second
search.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from sluice.delta.log.opened import CommitCache, commit_of
from sluice.delta.reading.wanted import WantedValues

ROW = "_sluice_row"  # a row's number in its file
FOUND_BYTES = 32_000_000  # of Arrow
Pages = Iterable[tuple[str, pa.Table]]  # rows by the path of their file, with their numbers
COMPARED_ROWS = 50_000  # at a time
Of = TypeVar("Of")


class TypeMismatch(Exception):
    """A file has columns of other types than its table, so it can't be searched."""


@dataclass(frozen=True)
class File:
    """A data file, by its path, bytes and time in the log.

    `kept` masks its remaining rows; `constants` are columns stored outside it. One that is far has
    no wanted row.
    """

    path: str
    bytes: int = 0
    time: int = 0
    is_far: bool = False
    kept: pa.BooleanArray | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """The number of rows that it no longer has."""
        return 0 if self.kept is None else self.kept.false_count

    def may_have(self, values: WantedValues) -> bool:
        """True unless a constant is not among the wanted values."""
        known = self.constants.items()
        return all(value in values[n].to_pylist() for n, value in known if n in values)


@dataclass(frozen=True)
class FoundRows:
    """All rows of one version whose values are among those wanted, with their numbers, by file."""

    wanted: WantedValues
    pages: Mapping[str, pa.Table]

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
