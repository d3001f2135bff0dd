"""Rewrite files with marked rows in pieces, before a commit removes them.

For a marked file that a commit removes, delta-rs' feed shows the marked rows, not the live ones.
Files whose marked rows must be forgotten are written again as well. No step starts Spark.
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from sluice.delta.log.lost_race import lost, lost_race_of
from sluice.delta.log.position import Head, head_of
from sluice.delta.places.delta_rs import open_table
from sluice.delta.upkeep.laid import unordered
from sluice.delta.upkeep.maintenance import Filing, unfenced, upkeep
from sluice.delta.upkeep.pieces import packed
from sluice.delta.upkeep.rewriting import Now, may_rewrite, rewrite
from sluice.delta.writing.filing import Slice
from sluice.delta.writing.linked import checkpoint
from sluice.delta.writing.statistics import writer_properties
from sluice.limits import Limits

KIND = "compact"


def unmark(filing: Filing, slices: Sequence[Slice]) -> Head:
    """Rewrite slices' files that have marked rows; return the head.

    Raises LostRace if another writer was first.
    """
    marked = [s for s in slices if s.gone]
    if not marked:
        return filing.before
    return _by_pieces(filing, marked) if may_rewrite(filing) else _whole(filing, marked)


def unmarked(before: Head, limits: Limits) -> Head:
    """Rewrite all files with marked rows before an overwrite; return the table's head.

    Raises LostRace.
    """
    filing = Filing(before, limits)
    return before if before.position is None else unmark(filing, filing.slices)


def _by_pieces(filing: Filing, slices: Sequence[Slice]) -> Head:
    """Write the marked files again, a piece in each commit."""
    head, now = filing.before, Now.of(filing)
    worn = [path for s in slices for path, gone in zip(s.paths, s.lost, strict=True) if gone]
    assert now is not None
    for piece in packed(unordered(now.folder, worn, now.schema), filing.limits.piece_bytes):
        now = Now.of(filing)
        if now is None or now.head.version != head.version:
            raise lost(head.uri, head.version)
        left = tuple(take for take in piece.takes if take.path in now.files)
        if rewrite(now, replace(piece, takes=left), filing.limits, KIND) is not None:
            head = _at(head.uri, head.version + 1)
    checkpoint(head.uri)
    return head


def _whole(filing: Filing, slices: Sequence[Slice]) -> Head:
    """Write all files of the slices again, by delta-rs."""
    before = filing.before
    table = open_table(before.uri, version=before.version)
    schema, parts = pa.schema(table.schema().to_arrow()), table.metadata().partition_columns
    numbers = [str(s.number) for s in slices if s.number is not None]
    here = [(name, "in", numbers) for name in parts if len(numbers) == len(slices)]
    shown = [*(d.column for d in filing.order), *schema.names]
    with lost_race_of(before.uri, before.version):
        table.optimize.z_order(
            [next(name for name in shown if name not in parts)],
            partition_filters=here or None,
            writer_properties=writer_properties(schema),
            commit_properties=unfenced(upkeep(before, KIND)),
        )
    return _at(before.uri, before.version + 1)


def _at(uri: str, version: int) -> Head:
    return head_of(open_table(uri, version), uri)
