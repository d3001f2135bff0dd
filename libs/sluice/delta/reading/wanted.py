"""Values that are wanted from a table, the files that may have some, and the rows found.

Values are compared by plain equality, so only exact types are searched.

Rows that a batch has found are kept until its commit. The commit marks those that the batch
changes, and its feed shows their values, without a second search.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from sluice.delta.log.files import active_files
from sluice.delta.log.opened import CommitCache, commit_of

MOST = 16
EXACT = (
    *(pa.types.is_integer, pa.types.is_string, pa.types.is_boolean),
    *(pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal),
)
KeyBounds = tuple[int, int]
KeySpans = Mapping[str, list[KeyBounds]]
WantedValues = Mapping[str, pa.ChunkedArray]  # by column, the wanted values


@dataclass(frozen=True)
class Span:
    """The least and the greatest wanted value of a column, null for no bound; and nulls, or not."""

    column: str
    least: pa.Scalar
    most: pa.Scalar
    nulls: bool

    @property
    def condition(self) -> pc.Expression:
        """The condition that a row's value is wanted."""
        column = pc.field(self.column)
        is_within = column.is_valid()
        if self.least.is_valid:
            is_within &= column >= self.least
        if self.most.is_valid:
            is_within &= column <= self.most
        return is_within | column.is_null() if self.nulls else is_within


def is_exact(type_: pa.DataType) -> bool:
    """True if equal values of the type are the same value, in Arrow and in Spark."""
    return any(is_a(type_) for is_a in EXACT)


def are_among(rows: pa.Table, wanted: Sequence[Mapping[str, pa.Array]]) -> pa.ChunkedArray:
    """Return for each row whether all its values are among those of one of `wanted`."""
    tests = (
        reduce(pc.and_, (pc.is_in(rows[name], some) for name, some in one.items()))
        for one in wanted
    )
    return reduce(pc.or_, tests)


def clusters(values: pa.ChunkedArray | pa.Array) -> list[KeyBounds]:
    """Return the least and greatest value of at most MOST clusters, in order; nulls are ignored.

    They are split at the widest gaps, because new keys are often far from the changed ones. One
    span from the least to the greatest would admit all files in between.
    """
    known = pc.unique(values).drop_null()
    ordered = known.take(pc.sort_indices(known)).to_numpy(zero_copy_only=False)
    if not len(ordered):
        return []
    gaps = ordered[1:] - ordered[:-1]
    ends = sorted(gaps.argsort()[::-1][: MOST - 1])
    firsts = [0, *(int(end) + 1 for end in ends)]
    lasts = [*(int(end) for end in ends), len(ordered) - 1]
    return [(int(ordered[a]), int(ordered[b])) for a, b in zip(firsts, lasts, strict=True)]


def spans_of(wanted: Iterable[WantedValues]) -> list[KeySpans]:
    """Return the clusters of whole numbers of each of `wanted`."""
    return [
        {
            name: clusters(some)
            for name, some in values.items()
            if pa.types.is_integer(some.type) and not some.null_count and len(some)
        }
        for values in wanted
    ]


def files_far(table: DeltaTable, wanted: Sequence[WantedValues]) -> set[str]:
    """Return the files whose partitions or bounds of whole numbers exclude all wanted rows."""
    spans, files = spans_of(wanted), active_files(table).to_pylist()
    return {file["path"] for file in files if not may_hold(file, spans)}


def may_hold(bounds: Mapping[str, Any], spans: Iterable[KeySpans]) -> bool:
    """True unless bounds, named as by `active_files`, exclude the values of all `spans`."""
    return any(_meet(bounds, one) for one in spans)


def _meet(bounds: Mapping[str, Any], spans: KeySpans) -> bool:
    for name, of_column in spans.items():
        filed = bounds.get(f"partition.{name}")
        first, last = bounds.get(f"min.{name}", filed), bounds.get(f"max.{name}", filed)
        if first is None or last is None:
            continue
        if not any(first <= most and last >= least for least, most in of_column):
            return False
    return True


ROW = "_sluice_row"  # a row's number in its file
FOUND_BYTES = 32_000_000  # of Arrow
Pages = Iterable[tuple[str, pa.Table]]  # rows by the path of their file, with their numbers
COMPARED_ROWS = 50_000  # at a time
Of = TypeVar("Of")


class TypeMismatch(Exception):
    """A file has columns of other types than its table, so it can't be searched."""


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


def keep_found(uri: str, version: int, found: FoundRows) -> None:
    """Keep the rows found in a version of a table, unless there are many or none."""
    if not found.is_empty:
        _found.keep(commit_of(uri, version), found)


def take_found(uri: str, version: int, values: WantedValues) -> Pages | None:
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
