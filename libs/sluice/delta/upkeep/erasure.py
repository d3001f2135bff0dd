"""Erasure of a table's past: what its newest version does not need is removed from its folder.

Rows that were deleted live on in old files, in the change feed, and in the log's least and greatest
values of old files. Here the old files are deleted, and the log loses those values. Its versions
and positions stay. So batches continue, but earlier versions can no longer be read. Safe to repeat.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from pyarrow.fs import FileInfo, FileSystem, FileType

from sluice.cache import discard_rows
from sluice.delta.log.actions import Action, Log
from sluice.delta.log.files import active_files, added_files, vector_file
from sluice.delta.places.delta_rs import locate, open_table
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import LOG, files_in, local_path, replace_file
from sluice.delta.upkeep.inspection import GRACE
from sluice.delta.upkeep.vacuum import committed_at

COMMIT = re.compile(r"(\d{20})\.json")
NUMBERED = re.compile(r"(\d{20})\.")
BOUNDS = ("minValues", "maxValues")


@dataclass(frozen=True)
class Erased:
    """Files that were deleted, and commits whose entries lost their statistics of deleted rows."""

    files: int
    entries: int


def erase_past(uri: str, now: datetime) -> Erased:
    """Remove from a table's folder what its newest version does not need.

    A file that no commit names is kept if it is younger than the newest commit, because a writer
    may be about to name it.
    """
    table = open_table(uri)
    active = set(map(unquote, active_files(table).column("path").to_pylist()))
    added = added_files(uri, table.version()) or {}
    active |= {path for file in added.values() if (path := vector_file(file))}
    filesystem, root = locate(uri)
    since = max(committed_at(uri, table.version()) or now - GRACE, now - GRACE)
    files = _delete_files(filesystem, root, active, set(Log(uri).named_files()), since)
    passing("erasing", uri)
    discard_rows(local_path(uri) or uri)
    entries = _redact(filesystem, root, active, table.version())
    passing("redacted", uri)
    table.create_checkpoint()
    for info in files_in(filesystem, f"{root}/{LOG}"):
        if _is_copy(info, f"{root}/{LOG}", table.version()):
            filesystem.delete_file(info.path)
    return Erased(files, entries)


def _delete_files(
    filesystem: FileSystem, root: str, active: set[str], named: set[str], since: datetime
) -> int:
    """Delete inactive files that a commit of the log names, or that are older than `since`.

    Of the log, only the remains of killed writers are deleted.
    """
    count = 0
    for info in files_in(filesystem, root):
        path = info.path[len(root) :].lstrip("/")
        folder, slash, name = path.rpartition("/")
        is_sum = name.startswith(".") and name.endswith(".crc")  # of the file beside it
        is_draft = name.endswith(".tmp") or (name.startswith(".") and not is_sum)
        if path in active or (folder.startswith(LOG) and not is_draft):
            continue
        is_named = (f"{folder}{slash}{name[1:-4]}" if is_sum else path) in named
        if is_named or not info.mtime or info.mtime.astimezone(UTC) < since:
            filesystem.delete_file(info.path)
            count += 1
    return count


def _redact(filesystem: FileSystem, root: str, active: set[str], version: int) -> int:
    """Remove row statistics of commits up to a version from the log, but not of active files."""
    count = 0
    for info in files_in(filesystem, f"{root}/{LOG}"):
        commit = COMMIT.fullmatch(info.base_name)
        if commit is None or int(commit[1]) > version:
            continue
        with filesystem.open_input_stream(info.path) as stream:
            lines = bytes(stream.read()).splitlines()
        actions = [json.loads(line) for line in lines if line]
        redacted = [_redact_action(action, active) for action in actions]
        if redacted != actions:
            text = "\n".join(json.dumps(action, separators=(",", ":")) for action in redacted)
            replace_file(filesystem, info.path, text.encode(), is_lasting=True)
            checksum = info.path.removesuffix(info.base_name) + f".{info.base_name}.crc"  # Spark's
            if filesystem.get_file_info(checksum).type == FileType.File:
                filesystem.delete_file(checksum)
            count += 1
    return count


def _redact_action(action: Action, active: set[str]) -> Action:
    """Return an action without bounds of values of a file that is not active, or predicates."""
    (name, body), *_ = action.items()
    if name in ("add", "remove") and unquote(body["path"]) not in active and body.get("stats"):
        stats: dict[str, Any] = json.loads(body["stats"])
        if stats.keys() & {*BOUNDS}:
            kept = {k: v for k, v in stats.items() if k not in BOUNDS}
            return {name: {**body, "stats": json.dumps(kept, separators=(",", ":"))}}
    if name == "commitInfo" and (parameters := body.get("operationParameters")):
        kept = {k: v for k, v in parameters.items() if "predicate" not in k.lower()}
        return {name: {**body, "operationParameters": kept}}
    return action


def _is_copy(info: FileInfo, log: str, version: int) -> bool:
    """True for what repeats the log up to a version: older checkpoints, sums, compacted commits."""
    name = info.base_name
    if info.path != f"{log}/{name}":
        return True  # a part of a checkpoint in several files
    if name.endswith(".crc"):
        return not name.startswith(".") or ".checkpoint" in name
    number = NUMBERED.match(name)
    is_older = number is not None and int(number[1]) < version
    return is_older and (".checkpoint" in name or ".compacted." in name)
