"""Commit a small changelog to a large table by marking the rows that go; no file is rewritten.

Changed keys from everywhere are in every file, and a MERGE would write the whole table. So rows
that go are marked in deletion vectors, which lie in the log, and new rows are added in one file.
The change data lies beside it, where every reader of the feed finds it. delta-rs reads such tables
but can't write vectors: the commit is made here, by a hard link that only one writer can make.
"""

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from sluice.changes.diff import CHANGE
from sluice.delta.log.actions import Action
from sluice.delta.log.active import active_files
from sluice.delta.log.added import added
from sluice.delta.log.conflicts import lost
from sluice.delta.log.feed_size import size_of
from sluice.delta.log.opened import CHECKPOINTS, keep, opened, taken
from sluice.delta.log.position import Head, Position
from sluice.delta.log.vectors import FEATURE, SETTING, has_vectors, kept_rows
from sluice.delta.places.failpoint import passing
from sluice.delta.places.walk import local_path
from sluice.delta.reading.found import take
from sluice.delta.reading.local import arrow_schema
from sluice.delta.reading.matches import can_search, files_far, is_exact
from sluice.delta.writing.fence import Committed, fenced, result_of, won
from sluice.delta.writing.marked_files import MarkedFiles, now
from sluice.delta.writing.matching import Keys, Matched, matched
from sluice.delta.writing.merge import check_applied
from sluice.limits import Limits

LEGACY = frozenset({"appendOnly", "invariants", "changeDataFeed"})
WRITABLE = LEGACY | {FEATURE, "timestampNtz"}  # features that ask nothing more of this commit


def may_mark(before: Head, key: Sequence[str], limits: Limits) -> bool:
    """True if few changed rows of the table would be marked, if they are not in few files."""
    table = opened(before.uri, before.version)
    if not (local_path(before.uri) and key and _is_plain(table) and can_search()):
        return False
    schema = arrow_schema(before.uri, before.version)
    is_large = size_of(table).bytes > limits.merged_bytes
    return is_large and all(is_exact(schema.field(name).type) for name in key)


def is_marked(before: Head, rows: pa.Table, key: Sequence[str], limits: Limits) -> bool:
    """True if a changelog is better marked than merged: its keys are few, but in many files."""
    if not may_mark(before, key, limits):
        return False
    table = opened(before.uri, before.version)
    files = active_files(table).select(["path", "size_bytes", "num_records"]).to_pylist()
    if any(file["num_records"] is None for file in files):
        return False
    far = files_far(table, [{name: rows[name] for name in key}])
    near = [file for file in files if file["path"] not in far]
    return (
        sum(file["size_bytes"] for file in near) > limits.merged_bytes
        and rows.num_rows <= limits.marked_share * sum(file["num_records"] for file in near)
        and added(before.uri, before.version) is not None
    )


def _is_plain(table: DeltaTable) -> bool:
    """True if nothing in the table asks more of a writer than this module does."""
    protocol = table.protocol()
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    return features <= WRITABLE and not table.metadata().partition_columns


def commit_marked(
    before: Head, rows: pa.Table, key: Sequence[str], position: Position, limits: Limits
) -> Committed:
    """Commit a changelog like `commit_arrow`, onto exactly the version that `before` names.

    Small files that earlier commits have left are put together with the new one from time to time.
    """
    uri, done = before.uri, result_of(before, Counter(rows[CHANGE].to_pylist()))
    table, files = taken(uri, before.version), added(uri, before.version)
    folder = local_path(uri)
    assert folder is not None
    assert files is not None
    schema, kept = arrow_schema(uri, before.version), kept_rows(table)
    keys = Keys(rows, key)
    far = files_far(table, [keys.values])
    near = [path for path in files if path not in far]
    known = take(uri, before.version, keys.values)
    with fenced(before, position) as mine:
        found = list(matched(folder, near, kept, keys, schema, known))
        check_applied(before, done, _applied(rows, found))
        marked = MarkedFiles(folder, files, kept, found, schema, limits)
        txn = {"appId": before.table, "version": mine.batch, "lastUpdated": now()}
        actions = [*_setting(table), {"txn": txn}, *marked.actions(rows, key), _info(before, mine)]
        passing("marked", uri)
        _commit(folder, before, actions)
    table.update_incremental()
    every = {**CHECKPOINTS, **table.metadata().configuration}["delta.checkpointInterval"]
    if done.version % int(every) == 0:
        table.create_checkpoint()
    keep(uri, table)
    return won(before, position, done)


def _applied(rows: pa.Table, found: Sequence[Matched]) -> tuple[int, int, int]:
    """Return how many rows were missing, as an insert's must, and were there to alter or delete."""
    places = np.concatenate([one.places for one in found]) if found else np.array([], np.int64)
    hits = Counter(rows[CHANGE].take(pa.array(places)).to_pylist())
    inserts = pc.sum(pc.equal(rows[CHANGE], "insert")).as_py() or 0
    return inserts - hits["insert"], hits["update"], hits["delete"]


def _setting(table: DeltaTable) -> Iterator[Action]:
    """Yield the actions that allow a table vectors, unless it has them."""
    metadata, protocol = table.metadata(), table.protocol()
    if has_vectors(table) and metadata.configuration.get(SETTING) == "true":
        return
    yield {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": sorted({*(protocol.reader_features or ()), FEATURE}),
            "writerFeatures": sorted({*(protocol.writer_features or LEGACY), FEATURE}),
        }
    }
    yield {
        "metaData": {
            "id": str(metadata.id),
            **{name: text for name in ("name", "description") if (text := getattr(metadata, name))},
            "format": {"provider": "parquet", "options": {}},
            "schemaString": table.schema().to_json(),
            "partitionColumns": [],
            "configuration": {**metadata.configuration, SETTING: "true"},
            "createdTime": metadata.created_time,
        }
    }


def _info(before: Head, position: Position) -> Action:
    return {
        "commitInfo": {
            "timestamp": now(),
            "operation": "MERGE",
            "operationParameters": {},
            "readVersion": before.version,
            "isBlindAppend": False,
            "engineInfo": "sluice",
            "userMetadata": position.to_json(),
        }
    }


def _commit(folder: str, before: Head, actions: Sequence[Action]) -> None:
    """Make the commit after `before`. Raises LostRace if there is one."""
    log, number = Path(folder, "_delta_log"), before.version + 1
    draft = log / f"_commit_{uuid.uuid4()}.json.tmp"
    draft.write_text("\n".join(json.dumps(action) for action in actions), encoding="utf-8")
    try:
        os.link(draft, log / f"{number:020d}.json")
    except FileExistsError:
        raise lost(before.uri, before.version) from None
    finally:
        draft.unlink()
