"""Commit a small changelog to a large table by marking removed rows; no file is rewritten.

Scattered keys are in every file, and a MERGE would write the whole table. So removed rows are
marked in deletion vectors in the log, and new rows are added in one file. The change data lies
beside it, where every reader of the feed finds it.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluice.changes.diff import CHANGE
from sluice.delta.log.active import active_files
from sluice.delta.log.added import added
from sluice.delta.log.feed_size import size_of
from sluice.delta.log.opened import opened
from sluice.delta.log.position import Head, Position
from sluice.delta.log.vectors import kept_rows
from sluice.delta.places.failpoint import passing
from sluice.delta.places.landed_files import local_path
from sluice.delta.reading.found import take
from sluice.delta.reading.local import arrow_schema
from sluice.delta.reading.searched_version import can_search, files_far, is_exact
from sluice.delta.writing.fence import Committed, fenced, result_of, won
from sluice.delta.writing.file_actions import now
from sluice.delta.writing.keyed_rows import Keys, Matched, matched
from sluice.delta.writing.linked import commit_actions, info, is_plain, vectors_allowed
from sluice.delta.writing.marked_files import MarkedFiles
from sluice.delta.writing.merge import check_applied
from sluice.limits import Limits


def most_marked(before: Head, key: Sequence[str], limits: Limits) -> int:
    """Return the largest number of changed rows that are marked, if they are not in few files. It
    is 0 if the table is small, or can't have marked rows.
    """
    size = size_of(opened(before.uri, before.version))
    is_large = size.bytes > limits.merged_bytes and size.rows is not None
    return int(limits.marked_share * (size.rows or 0)) if is_large and _can_mark(before, key) else 0


def _can_mark(before: Head, key: Sequence[str]) -> bool:
    """True if rows of the table can be found by the key, and marked in a commit made here."""
    table = opened(before.uri, before.version)
    if not (key and is_plain(table) and local_path(before.uri) and can_search()):
        return False
    schema, parts = arrow_schema(before.uri, before.version), table.metadata().partition_columns
    if parts and (len(parts) > 1 or not pa.types.is_integer(schema.field(parts[0]).type)):
        return False
    return all(name in schema.names and is_exact(schema.field(name).type) for name in key)


def is_marked(before: Head, rows: pa.Table, key: Sequence[str], limits: Limits) -> bool:
    """True if a changelog is better marked than merged: its keys are few, but in many files."""
    if not most_marked(before, key, limits):
        return False
    table = opened(before.uri, before.version)
    files = active_files(table).select(["path", "size_bytes", "num_records"]).to_pylist()
    far = files_far(table, [{name: rows[name] for name in key}])
    near = [file for file in files if file["path"] not in far]
    is_parted = bool(table.metadata().partition_columns)
    most = limits.merged_slice_bytes if is_parted else limits.merged_bytes
    return (
        sum(file["size_bytes"] for file in near) > most
        and rows.num_rows <= limits.marked_share * sum(file["num_records"] for file in near)
        and added(before.uri, before.version) is not None
    )


def commit_marked(
    before: Head, rows: pa.Table, key: Sequence[str], position: Position, limits: Limits
) -> Committed:
    """Commit a changelog like `commit_arrow`, onto exactly the version that `before` names.

    Small files of earlier commits are combined with the new one from time to time.
    """
    uri, done = before.uri, result_of(before, Counter(rows[CHANGE].to_pylist()))
    table, files = opened(uri, before.version), added(uri, before.version)
    folder = local_path(uri)
    assert folder is not None
    assert files is not None
    schema, kept = arrow_schema(uri, before.version), kept_rows(table)
    keys = Keys(rows, key)
    far = files_far(table, [keys.values])
    near = {path: file for path, file in files.items() if path not in far}
    known = take(uri, before.version, keys.values)
    with fenced(before, position) as mine:
        found = list(matched(folder, near, kept, keys, schema, limits, known))
        check_applied(before, done, _applied(rows, found))
        (partition,) = table.metadata().partition_columns or (None,)
        marked = MarkedFiles(folder, files, kept, found, schema, limits, partition)
        txn = {"appId": before.table, "version": mine.batch, "lastUpdated": now()}
        noted = info(before, mine, "MERGE", done)
        actions = [*vectors_allowed(table), {"txn": txn}, *marked.actions(rows, key), noted]
        passing("marked", uri)
        commit_actions(before, actions)
    return won(before, position, done)


def _applied(rows: pa.Table, found: Sequence[Matched]) -> tuple[int, int, int]:
    """Return the numbers of rows that were missing, as for inserts, and present, as for others."""
    places = np.concatenate([one.places for one in found]) if found else np.array([], np.int64)
    hits = Counter(rows[CHANGE].take(pa.array(places)).to_pylist())
    inserts = pc.sum(pc.equal(rows[CHANGE], "insert")).as_py() or 0
    return inserts - hits["insert"], hits["update"], hits["delete"]
