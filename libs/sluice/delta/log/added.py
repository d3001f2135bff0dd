"""The `add` actions of a version: all that the log says of each file, with its deletion vector.

delta-rs doesn't give them whole. They are replayed from the last checkpoint, or from a version that
was replayed before in this process.
"""

from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cachetools import LRUCache

from sluice.delta.log.actions import Action, Log
from sluice.delta.log.opened import CommitKey, commit_of
from sluice.delta.places.delta_rs import files_below

Added = dict[str, Action]  # by path as in the log

_known: LRUCache[CommitKey, Added] = LRUCache(8)
_keeping = Lock()


def added(uri: str, version: int) -> Added | None:
    """Return the files of a version by path; None if the log before it can't be replayed here."""
    log, later = Log(uri), list[list[Action]]()
    for number in range(version, -1, -1):
        found = _kept(uri, number) or _of_checkpoint(uri, number)
        if found is not None:
            break
        try:
            later.append(log.actions(number))
        except FileNotFoundError:
            return None
    else:
        found = {}
    for actions in reversed(later):
        found = _after(found, actions)
    _keep(uri, version, found)
    return found


def partition_of(file: Action, schema: pa.Schema) -> dict[str, Any]:
    """Return the values of a file's partition, which the log holds as texts, by column."""
    values = file["partitionValues"].items()
    return {
        name: text and pa.scalar(text).cast(schema.field(name).type).as_py()
        for name, text in values
    }


def _after(files: Added, actions: list[Action]) -> Added:
    gone = {a["remove"]["path"] for a in actions if "remove" in a}
    came = {a["add"]["path"]: a["add"] for a in actions if "add" in a}
    return {path: add for path, add in files.items() if path not in gone} | came


def _kept(uri: str, version: int) -> Added | None:
    commit = commit_of(uri, version)
    with _keeping:
        return _known.get(commit) if commit else None


def _keep(uri: str, version: int, files: Added) -> None:
    if commit := commit_of(uri, version):
        with _keeping:
            _known[commit] = files


def _of_checkpoint(uri: str, version: int) -> Added | None:
    """Return the files that a classic checkpoint names; None if there is none, or another kind.

    delta-rs gives every checkpoint a column for files of checkpoints, which is empty in these. One
    whose statistics are not texts counts as another kind.
    """
    try:
        with files_below(uri).open_input_file(
            f"_delta_log/{version:020d}.checkpoint.parquet"
        ) as file:
            rows = pq.ParquetFile(file).read(["add", "sidecar"])
    except (FileNotFoundError, pa.ArrowInvalid):
        return None
    if "sidecar" in rows.column_names and rows["sidecar"].null_count < rows.num_rows:
        return None
    files = [_plain(file) for file in rows["add"].drop_null().to_pylist()]
    is_whole = all("stats" in file for file in files)
    return {file["path"]: file for file in files} if is_whole else None


def _plain(file: dict[str, Any]) -> Action:
    """Return an action of a checkpoint as a commit holds it."""
    known = {name: value for name, value in file.items() if value is not None}
    known |= {name: dict(known[name]) for name in ("partitionValues", "tags") if name in known}
    if vector := known.get("deletionVector"):
        known["deletionVector"] = {name: v for name, v in vector.items() if v is not None}
    known.pop("stats_parsed", None)
    known.pop("partitionValues_parsed", None)
    return known
