"""Commits that Sluice writes itself, without Spark, because deltalake can't add a vector.

A commit is a draft, then a hard link to its place in the log, which the file system grants to one
writer. delta-rs commits to a disk in the same way, but syncs nothing. Here, the files that a commit
names are on the disk before the commit can be seen, and the commit before it is reported.
"""

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from deltalake import DeltaTable

from sluice.delta.log.actions import Action
from sluice.delta.log.lost_race import lost
from sluice.delta.log.opened import CHECKPOINTS, keep, opened, taken
from sluice.delta.log.position import Head, Position
from sluice.delta.log.vectors import FEATURE, SETTING, has_vectors
from sluice.delta.places.folders import LOG, sync
from sluice.delta.places.landed_files import local_path
from sluice.delta.writing.fence import Committed
from sluice.delta.writing.file_actions import now

LEGACY = frozenset({"appendOnly", "invariants", "changeDataFeed"})
KINDS = ("add", "cdc", "remove")  # actions that name a file
CONSTRAINTS = "delta.constraints."
WRITABLE = LEGACY | {FEATURE, "timestampNtz"}  # features that need nothing else from these commits


def is_plain(table: DeltaTable) -> bool:
    """True if these commits satisfy all of the table's writer features."""
    protocol = table.protocol()
    if any(name.startswith(CONSTRAINTS) for name in table.metadata().configuration):
        return False
    return {*(protocol.writer_features or ()), *(protocol.reader_features or ())} <= WRITABLE


def commit_actions(before: Head, actions: Sequence[Action]) -> None:
    """Make the commit after `before`, and keep the table open. Raises LostRace if there is one."""
    folder = local_path(before.uri)
    assert folder is not None
    table = taken(before.uri, before.version)
    _link(folder, before, actions)
    table.update_incremental()
    every = {**CHECKPOINTS, **table.metadata().configuration}["delta.checkpointInterval"]
    if table.version() % int(every) == 0:
        table.create_checkpoint()
    keep(before.uri, table)


def checkpoint(uri: str) -> None:
    """Save later readers the commits up to the head."""
    opened(uri).create_checkpoint()


def info(before: Head, position: Position, operation: str, done: Committed | None = None) -> Action:
    """Return the action that carries the position, and counts of changes as delta-rs has them."""
    counts = done and {
        "num_target_rows_inserted": done.inserted,
        "num_target_rows_updated": done.updated,
        "num_target_rows_deleted": done.deleted,
    }
    return {
        "commitInfo": {
            "timestamp": now(),
            "operation": operation,
            "operationParameters": {},
            "readVersion": before.version,
            "isBlindAppend": False,
            "engineInfo": "sluice",
            **({"operationMetrics": counts} if counts else {}),
            "userMetadata": position.to_json(),
        }
    }


def vectors_allowed(table: DeltaTable) -> Iterator[Action]:
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
            "partitionColumns": metadata.partition_columns,
            "configuration": {**metadata.configuration, SETTING: "true"},
            "createdTime": metadata.created_time,
        }
    }


def _link(folder: str, before: Head, actions: Sequence[Action]) -> None:
    log, number = Path(folder, LOG), before.version + 1
    draft = log / f"_commit_{uuid.uuid4()}.json.tmp"
    draft.write_text("\n".join(json.dumps(action) for action in actions), encoding="utf-8")
    try:
        sync([*_named(Path(folder), actions), draft])
        os.link(draft, log / f"{number:020d}.json")
        sync([log])
    except FileExistsError:
        raise lost(before.uri, before.version) from None
    finally:
        draft.unlink()


def _named(folder: Path, actions: Sequence[Action]) -> Iterator[Path]:
    """Yield the new files that a commit names, then the folders that hold their names."""
    names = {kind: [a[kind]["path"] for a in actions if kind in a] for kind in KINDS}
    new = {*names["add"], *names["cdc"]} - {*names["remove"]}
    files = [folder / unquote(name) for name in sorted(new)]
    yield from files
    for file in files:
        yield from (above for above in file.parents if above.is_relative_to(folder))
