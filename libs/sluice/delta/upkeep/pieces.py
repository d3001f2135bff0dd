"""Pieces in which upkeep files a table again: its worn files, and its possible cuts.

The table's ground consists of the files that have the most rows for their key range and don't
overlap. All others are covers, which batches have added over many keys. The ground is cut into
segments at its files. A segment is due if enough of its rows were marked or are in covers, or if
its file is small. Segments that are due are combined up to a number of bytes, each with the part of
the covers in its key range. Files of other segments stay.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from sluice.delta.upkeep.laid import Laid
from sluice.delta.writing.filing import WORN
from sluice.limits import Limits

CHANGED = WORN / 2  # of a segment that is filed again when the table is due


@dataclass(frozen=True)
class Take:
    """A file, and the row groups that a piece reads; None: all."""

    path: str
    groups: range | None = None


@dataclass(frozen=True)
class Piece:
    """Rows that one commit files again: of these row groups, from a rank up to another, or all.
    `bytes`: those of the row groups.
    """

    takes: tuple[Take, ...]
    start: int | None = None
    end: int | None = None
    bytes: int = 0


@dataclass(frozen=True)
class Segment:
    """Keys from a rank up to another one; None: from the first, up to the last."""

    start: int | None
    end: int | None
    is_due: bool


def gathering(files: Sequence[Laid], limits: Limits) -> list[Piece]:
    """Return pieces of files whose rows are in no order, and of many small covers.

    They come first, because sorted files can't be cut before, and each cut reads a row group of
    every cover. If these are most of a piece, all covers come first, unless as many would be left.
    """
    if _is_one(files, limits):
        return []
    covers = Ground([file for file in files if file.is_sorted], limits).covers
    small = [cover for cover in covers if _is_small(cover, limits)]
    chosen = [file for file in files if not file.is_sorted]
    size, rows = sum(cover.bytes for cover in covers), sum(cover.rows for cover in covers)
    left = max(-(-size // limits.piece_bytes), -(-rows // limits.file_rows))
    if 2 * sum(map(_largest, covers)) > limits.piece_bytes and len(covers) > left:
        chosen += covers
    elif len(small) >= limits.small_files:
        chosen += small
    return list(packed(chosen, limits.piece_bytes))


def merging(files: Sequence[Laid], limits: Limits) -> list[Piece]:
    """Return pieces of worn, small and very large files, and of the covers over them.

    A small table is one piece.
    """
    if _is_one(files, limits):
        return [Piece(tuple(Take(file.path) for file in files))]
    return list(Ground([file for file in files if file.is_sorted], limits).pieces())


def merging_covers(files: Sequence[Laid], limits: Limits) -> list[Piece]:
    """Return pieces of covers over other covers, for a table of which few rows have changed."""
    covers = Ground([file for file in files if file.is_sorted], limits).covers
    return list(Ground(covers, limits).pieces())


def is_within(pieces: Sequence[Piece], limits: Limits) -> bool:
    """True if no piece far exceeds the limit, as it would if rows were too wide to be cut."""
    return all(piece.bytes <= 2 * limits.piece_bytes for piece in pieces)


def _is_one(files: Sequence[Laid], limits: Limits) -> bool:
    return sum(file.bytes for file in files) <= limits.piece_bytes


def packed(files: Sequence[Laid], most: int) -> Iterator[Piece]:
    """Yield pieces of whole files, or of row groups of large ones."""
    takes, held = list[Take](), 0
    for file in files:
        begun = 0
        for group, (_, size) in enumerate(file.sizes):
            if held and held + size > most:
                yield Piece((*takes, *_some(file, begun, group)))
                takes, held, begun = [], 0, group
            held += size
        takes += _some(file, begun, len(file.sizes))
    if takes:
        yield Piece(tuple(takes))


def _some(file: Laid, start: int, end: int) -> list[Take]:
    return [Take(file.path, range(start, end))] if start < end else []


@dataclass(frozen=True)
class Ground:
    """Sorted files: ground files side by side, and the covers over them."""

    files: Sequence[Laid]
    limits: Limits

    def pieces(self) -> Iterator[Piece]:
        """Yield due segments, combined up to the limit."""
        held: Segment | None = None
        for segment in self._segments:
            joined = Segment(held.start, segment.end, True) if held and segment.is_due else None
            if joined and self._bytes(joined) <= self.limits.piece_bytes:
                held = joined
                continue
            if held:
                yield from self._piece(held)
            held = segment if segment.is_due else None
        if held:
            yield from self._piece(held)

    @cached_property
    def covers(self) -> list[Laid]:
        """Files over the keys of others."""
        beside = {file.path for file in self._beside}
        return [file for file in self.files if file.path not in beside]

    @cached_property
    def _beside(self) -> list[Laid]:
        """Files side by side, in order; the denser one of overlapping files."""
        chosen = list[Laid]()
        for file in sorted(self.files, key=_density, reverse=True):
            at = bisect_left(chosen, file.starts[0], key=_first)
            is_free = at == len(chosen) or file.starts[-1] < _first(chosen[at])
            if is_free and (at == 0 or chosen[at - 1].starts[-1] < file.starts[0]):
                chosen.insert(at, file)
        return chosen

    @cached_property
    def _segments(self) -> list[Segment]:
        """All keys in segments; segments with too many bytes are cut further."""
        cuts, found = [file.starts[0] for file in self._beside[1:]], list[Segment]()
        came, bounds = _spread(self.covers, cuts), pairwise([None, *cuts, None])
        for file, come, (start, end) in zip(self._beside, came, bounds, strict=False):
            whole = Segment(start, end, self._is_due(file, come))
            inner = self._within(whole) if self._bytes(whole) > self.limits.piece_bytes else []
            ends = zip([start, *inner], [*inner, end], strict=True)
            found += [Segment(a, b, whole.is_due) for a, b in ends]
        return found

    def _is_due(self, file: Laid, come: float) -> bool:
        is_changed = file.gone + come > CHANGED * (file.rows + file.gone + come)
        return is_changed or _is_small(file, self.limits, come) or is_lump(file, self.limits)

    def _within(self, segment: Segment) -> list[int]:
        """Return the ranks at which row groups begin in a segment, after its own start."""
        near = {rank for file in self._near(segment) for rank in file.starts[:-1]}
        low, high = segment.start, segment.end
        inside = (r for r in near if (low is None or r > low) and (high is None or r < high))
        return sorted(inside)

    def _near(self, segment: Segment) -> list[Laid]:
        """Return the files that may have rows of a segment."""
        low, high = segment.start, segment.end
        first = 0 if low is None else max(0, bisect_right(self._beside, low, key=_first) - 1)
        last = None if high is None else bisect_left(self._beside, high, key=_first)
        return [*self._beside[first:last], *self.covers]

    def _takes(self, segment: Segment) -> list[tuple[Laid, range]]:
        near = ((file, _groups(file, segment)) for file in self._near(segment))
        return [(file, groups) for file, groups in near if groups]

    def _bytes(self, segment: Segment) -> int:
        return sum(file.sizes[g][1] for file, groups in self._takes(segment) for g in groups)

    def _piece(self, segment: Segment) -> Iterator[Piece]:
        """Yield a piece, unless it would only copy a file."""
        found = self._takes(segment)
        if len(found) > 1 or any(file.gone or is_lump(file, self.limits) for file, _ in found):
            takes = tuple(Take(file.path, groups) for file, groups in found)
            yield Piece(takes, segment.start, segment.end, self._bytes(segment))


def _is_small(file: Laid, limits: Limits, come: float = 0) -> bool:
    """True if a file, with its added rows, has less than half of the usual rows."""
    return 2 * (file.rows + come) < limits.file_rows and 4 * file.bytes < limits.piece_bytes


def is_lump(file: Laid, limits: Limits) -> bool:
    """True if a file has the rows of more than two."""
    return file.rows + file.gone > 2 * limits.file_rows


def _largest(file: Laid) -> int:
    return max(size for _, size in file.sizes)


def _first(file: Laid) -> int:
    return file.starts[0]


def _spread(covers: Sequence[Laid], cuts: Sequence[int]) -> list[float]:
    """Return the number of cover rows between cuts, assuming an even spread in each row group."""
    came = [0.0] * (len(cuts) + 1)
    for cover in covers:
        for (rows, _), (start, end) in zip(cover.sizes, pairwise(cover.starts), strict=True):
            reached = range(bisect_right(cuts, start), bisect_right(cuts, end) + 1)
            for nth in reached:
                came[nth] += rows / len(reached)
    return came


def _density(file: Laid) -> float:
    return file.rows / (file.starts[-1] - file.starts[0] + 1)


def _groups(file: Laid, segment: Segment) -> range:
    """Return the row groups that may still have rows of a segment."""
    starts, last = file.starts[:-1], file.starts[-1]
    if segment.start is not None and last < segment.start:
        return range(0)
    first = 0 if segment.start is None else max(0, bisect_left(starts, segment.start) - 1)
    end = len(starts) if segment.end is None else bisect_left(starts, segment.end)
    there = [group for group in range(first, end) if file.sizes[group][0]]
    return range(there[0], there[-1] + 1) if there else range(0)
