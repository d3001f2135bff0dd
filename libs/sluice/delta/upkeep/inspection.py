"""Check a table early: its log, its checkpoints, its files, its settings.

Each check yields its findings as (name, description, repair). Nothing is changed, and no Spark is
started. Cost: a listing of the table's folder, and the log.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyarrow import parquet
from pyarrow.fs import FileInfo

from sluice.cache import rows_folder
from sluice.delta.log import position
from sluice.delta.log.actions import Log
from sluice.delta.log.files import active_files
from sluice.delta.places.delta_rs import files_below, open_table
from sluice.delta.places.folders import LOG, files_in, local_path
from sluice.delta.places.lake_layout import DamagedLog, moved_away
from sluice.delta.reading.local import arrow_schema
from sluice.delta.reading.row_index import TableIndex

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
