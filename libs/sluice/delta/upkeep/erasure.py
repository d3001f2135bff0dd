"""Check a table early, and erase its past: what its newest version does not need.

Rows that were deleted live on in old files, in the change feed, and in the log's least and greatest
values of old files. Here the old files are deleted, and the log loses those values. Its versions
and positions stay. So batches continue, but earlier versions can no longer be read. Safe to repeat.

Each check yields its findings as (name, description, repair). Nothing is changed, and no Spark is
started. Cost: a listing of the table's folder, and the log.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyarrow import parquet
from pyarrow.fs import FileInfo, FileSystem, FileType

from sluice.cache import discard_rows, rows_folder
from sluice.delta.log import Action, Log, position
from sluice.delta.log.files import active_files, added_files, vector_file
from sluice.delta.places.delta_rs import files_below, locate, open_table
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import LOG, files_in, local_path, replace_file
from sluice.delta.places.lake_layout import DamagedLog, moved_away
from sluice.delta.reading.local import arrow_schema
from sluice.delta.reading.row_index import TableIndex
from sluice.delta.upkeep.maintenance import committed_at

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


TableFault = tuple[str, str, str]
LAST = f"{LOG}/_last_checkpoint"
GRACE = timedelta(days=1)  # an unfinished commit has written files that no log names yet
CLEANUP = "delta.enableExpiredLogCleanup"


def log_faults(uri: str) -> Iterator[TableFault]:
    """Yield commits and checkpoints that are missing or can't be read."""
    files = {info.base_name: info for info in _listing(uri, LOG)}
    commits = (name.removesuffix(".json") for name in files if name.endswith(".json"))
    versions = sorted(int(number) for number in commits if number.isdigit())
    every = set(range(versions[0], versions[-1] + 1)) if versions else set()
    if missing := sorted(every - set(versions)):
        shown = ", ".join(map(str, missing[:5])) + ", ..." * (len(missing) > 5)
        yield "hole-in-log", f"the log lacks version(s) {shown}", moved_away(uri)
    for version in versions:
        try:
            is_whole = bool(Log(uri).actions(version))
        except DamagedLog:
            is_whole = False
        if not is_whole:  # a power cut leaves empty files
            yield "broken-commit", f"version {version} of the log can't be read", moved_away(uri)
    yield from _checkpoint_faults(uri, list(files))


def _checkpoint_faults(uri: str, names: list[str]) -> Iterator[TableFault]:
    storage = files_below(uri)
    mend = "delete it and `_last_checkpoint`: the log is complete, and yields the next checkpoint"
    for name in names:
        if name.endswith(".checkpoint.parquet"):
            try:
                with storage.open_input_file(f"{LOG}/{name}") as file:
                    parquet.ParquetFile(file).read(["txn"])
            except (pa.ArrowException, OSError):
                yield "broken-checkpoint", f"{LOG}/{name} can't be read", mend
    if "_last_checkpoint" not in names:
        return
    try:
        with storage.open_input_stream(LAST) as stream:
            version = int(json.loads(stream.read())["version"])
    except (ValueError, KeyError, TypeError):
        yield "broken-checkpoint", f"{LAST} can't be read", "delete it: Delta works without it"
        return
    if not any(name.startswith(f"{version:020d}.checkpoint") for name in names):
        yield "broken-checkpoint", f"{LAST} names version {version}, which is not there", mend


def file_faults(uri: str) -> Iterator[TableFault]:
    """Yield data files of the newest version that are missing or damaged."""
    try:
        actions = active_files(open_table(uri)).to_pylist()
    except (DeltaError, OSError) as error:
        why = str(error).splitlines()[0]
        yield "unreadable", f"the table can't be opened: {why}", moved_away(uri)
        return
    sizes = {info.path: info.size for info in _listing(uri, "")}
    wanted = {unquote(action["path"]): action["size_bytes"] for action in actions}
    for name, found in (
        ("missing-files", [path for path in wanted if path not in sizes]),
        ("changed-files", [p for p, size in wanted.items() if sizes.get(p, size) != size]),
    ):
        if found:
            yield name, f"{len(found)} of its data files, e.g. {found[0]}", moved_away(uri)


def index_faults(uri: str) -> Iterator[TableFault]:
    """Yield files of which this machine's index holds other rows; some files are drawn."""
    folder = rows_folder(local_path(uri) or uri)
    if not folder.is_dir():
        return
    if other := TableIndex(uri).differing(arrow_schema(uri, open_table(uri).version())):
        what = f"this machine's index holds other rows than {len(other)} files, e.g. {other[0]}"
        yield "wrong-index", what, f"delete {folder}, then `sluice verify`"


def orphans(uri: str, now: datetime) -> Iterator[TableFault]:
    """Yield files that no commit names, older than a day: remains of killed attempts."""
    active = active_files(open_table(uri)).column("path").to_pylist()
    named = {*Log(uri).named_files(), *map(unquote, active)}
    others = [info for info in _listing(uri, "") if info.path not in named and info.mtime]
    if old := [info for info in others if now - info.mtime.astimezone(UTC) > GRACE]:
        size = sum(info.size for info in old)
        what = f"{len(old)} file(s) of {size:,} bytes that no commit names, e.g. {old[0].path}"
        yield "orphan-files", what, "`sluice maintain` deletes them when they are a week old"


def setting_faults(uri: str) -> Iterator[TableFault]:
    """Yield settings under which Sluice can't follow or read the table."""
    table = open_table(uri)
    for what, repair in position.faults(table, uri):
        yield "unfit-setting", what, repair
    if table.metadata().configuration.get(CLEANUP, "").lower() == "true":
        what = f"{CLEANUP} is true: commits that views have yet to read may be cleaned"
        yield "unfit-setting", what, position.set_to(uri, CLEANUP, "false")


def file_retention(uri: str) -> timedelta:
    """Return how long a VACUUM by others keeps removed files."""
    text = open_table(uri).metadata().configuration.get("delta.deletedFileRetentionDuration", "")
    words = text.lower().removeprefix("interval").split()
    if len(words) == 2 and words[0].isdigit():
        unit = words[1].removesuffix("s") + "s"
        if unit in ("weeks", "days", "hours", "minutes", "seconds"):
            return timedelta(**{unit: int(words[0])})
    return timedelta(days=7)


def _listing(uri: str, folder: str) -> list[FileInfo]:
    """Return the files below a folder of the table; if that is the table's own, without the log."""
    files = files_in(files_below(uri), folder)
    return files if folder else [i for i in files if not i.path.startswith(LOG)]
