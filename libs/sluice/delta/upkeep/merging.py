"""File a table on a disk again in pieces, each in a separate commit, without Spark.

A piece reads a bounded number of bytes: files, or the part of files between two keys. It is
committed only onto the version that it was read from. If a batch was first, only this piece is
dropped. After a kill between two pieces, the table is whole, and the next upkeep continues.
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from sluice.delta.log.opened import opened
from sluice.delta.upkeep.laid import IN_MEMORY, Layout, layout_of, width_in
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.upkeep.pieces import Piece, Take, gathering, is_within, merging, merging_covers
from sluice.delta.upkeep.rewriting import Now, may_rewrite, rewrite
from sluice.delta.writing.file_actions import Partition
from sluice.delta.writing.filing import Slice
from sluice.delta.writing.linked import checkpoint
from sluice.errors import LostRace

WEIGHED = 3  # files of a slice of which a row group is read to see how wide rows are


def may_merge(filing: Filing) -> bool:
    """True if the table has an order, and pieces of it may be written again."""
    if not may_rewrite(filing):
        return False
    table, now = opened(filing.before.uri, filing.before.version), Now.of(filing)
    has_slices = bool(table.metadata().partition_columns)
    return has_slices == (filing.partition is not None) and bool(now and now.order)


def merge(filing: Filing, slices: Sequence[Slice], kind: str) -> tuple[int, list[Slice]]:
    """File the worn segments of these slices again.

    Return the number of replaced files, and the slices that are left to Spark. Their rows are too
    wide to be cut, or Arrow can't read their files in the table's types.
    """
    try:
        if filing.partition is None:
            return _merge_cut(filing, slices, kind)
        filing = replace(filing, limits=filing.limits.of_slices())
        bins, large = _bins(filing, slices)
        done = sum(_commit(filing, Piece(takes), None, kind) for takes in bins)
        cut, left = _merge_cut(filing, large, kind)
        return done + cut, left
    except pa.ArrowException:
        return 0, list(slices)


def _merge_cut(filing: Filing, slices: Sequence[Slice], kind: str) -> tuple[int, list[Slice]]:
    """Return the number of replaced files, and the slices that can't be cut."""
    done, left = 0, list[Slice]()
    for slice_ in slices:
        count, is_cut = _merge_slice(filing, slice_.folder, kind)
        done, left = done + count, left if is_cut else [*left, slice_]
    if opened(filing.before.uri).version() > filing.before.version + 1:
        checkpoint(filing.before.uri)
    return done, left


def _merge_slice(filing: Filing, folder: str, kind: str) -> tuple[int, bool]:
    """Return the number of replaced files, and false if the slice can't be cut."""
    layout, limits = _layout(filing, folder), filing.limits
    done = 0
    if first := gathering(layout.files, limits):
        done += sum(_commit(filing, piece, layout, kind) for piece in first)
        layout = _layout(filing, folder)
    found = merging(layout.files, limits)
    if not is_within(found, limits):
        return done, False
    worn = sum(_commit(filing, piece, layout, kind) for piece in found)
    if not worn:
        covers = merging_covers(layout.files, limits)
        worn = sum(_commit(filing, piece, layout, kind) for piece in covers)
    return done + worn, True


def _layout(filing: Filing, folder: str) -> Layout:
    """Return the layout of a slice's rows."""
    now = Now.of(filing)
    if now is None:
        return Layout([], pa.table({}))
    paths = [path for path, file in now.files.items() if Partition.of(file).folder == folder]
    return layout_of(now.folder, paths, now.kept, now.order, now.schema)


def _bins(filing: Filing, slices: Sequence[Slice]) -> tuple[list[tuple[Take, ...]], list[Slice]]:
    """Return the slices that fit in a piece, combined, and the others."""
    now, most = Now.of(filing), filing.limits.piece_bytes
    if now is None:
        return [], []
    bins, large, held = [tuple[Take, ...]()], list[Slice](), 0
    for slice_ in slices:
        size = _bytes(now, slice_)
        if size > most:
            large.append(slice_)
            continue
        if held + size > most:
            bins.append(())
            held = 0
        bins[-1] += tuple(map(Take, slice_.paths))
        held += size
    return [takes for takes in bins if takes], large


def _bytes(now: "Now", slice_: Slice) -> int:
    """Return a slice's bytes, or a quarter of those in memory, estimated from its largest files."""
    fullest = sorted(zip(slice_.rows, slice_.paths, strict=True))[-WEIGHED:]
    width = width_in(now.folder, [path for _, path in fullest], now.schema)
    return max(slice_.bytes, int(slice_.row_count * width) // IN_MEMORY)


def _commit(filing: Filing, piece: Piece, layout: Layout | None, kind: str) -> int:
    """File a piece again; return the number of replaced files: 0 if a batch has removed one."""
    now = Now.of(filing)
    if now is None or any(take.path not in now.files for take in piece.takes):
        return 0
    try:
        return rewrite(now, piece, filing.limits, kind, layout) or 0
    except LostRace:
        return 0
