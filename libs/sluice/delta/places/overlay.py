"""Lakes beside a lake: the same tables at the same versions, whose writes don't reach the first.

They are previews, and environments: a lake's tables, shared at the versions that they have now.

Data files and commits are hard links, so the cost is one name per file. No writer changes these in
place: new rows are new files, and upkeep removes names. Checkpoints and notes are copied. The
folder belongs to its process while the process holds a lock on it. The next process removes the
folder of a killed one.

An object store has no links and no locks. It copies all files itself: two requests for each file,
and no data passes through this process. The copies of a killed process are removed a day after it
began.

An environment is a permanent overlay: its files are links, or copies in a store, so changes of the
lake can't remove them. A file in it records its times and its tables' first versions.

A store can't rename folders. So each copy has its own folder there, and the first commit of the
table `claim` names the copy that owns a name. The store lets only one writer make this commit. A
copy without a name is being created, or was left by a killed process.
"""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from sluice.declare.environment_folders import (
    CLAIM,
    NOTE,
    claimant,
    existing,
    folders,
    names,
    place,
    places,
)
from sluice.delta.places.delta_rs import folder_names, locate, open_table, options
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import LOG, SmallFiles, remove
from sluice.delta.places.lake_layout import LakeLayout, folders_of, stored_tables
from sluice.delta.places.table_files import check_exclusive
from sluice.errors import Retryable, UsageError
from sluice.language.names import ENVIRONMENTS, PREVIEWS, QUALITY, declared_id

LEFT_AFTER = timedelta(days=1)
LAST = "_last_checkpoint"  # not copied: it may name a checkpoint that is newer than the copy
DATA, COMMIT = ".parquet", re.compile(r"\d{20}\.json")
COMMIT_PATH = re.compile(r".*/_delta_log/\d{20}\.json")
AT_ONCE = 16  # requests
ATTEMPTS = 3
BEGUN = "begun"
Share = Callable[[Iterable[str]], bool]


@contextmanager
def copies(lake: LakeLayout, folder: str) -> Iterator[tuple[LakeLayout, Share]]:
    """Yield a new lake in `folder` and a function that copies tables of `lake` to it; remove it at
    the end.

    The copying returns false if one of the tables changed meanwhile.
    """
    remove_abandoned_copies(folder)
    beside = LakeLayout(f"{folder}/{uuid4().hex}")
    try:
        yield beside, lambda table_ids: share(lake, beside, table_ids)
    finally:
        remove(beside.root)


def remove_abandoned_copies(folder: str, kept: Collection[str] = ()) -> None:
    """Remove the lakes in a folder that were begun long ago, except those to be kept."""
    for name, began in _beginnings(folder):
        if name in kept:
            continue
        if began is None or datetime.now(UTC) - began > LEFT_AFTER:
            remove(f"{folder}/{name}")


def list_left(folder: str) -> list[str]:
    """Return the names of the lakes in a folder."""
    return [name for name, _ in _beginnings(folder)]


def _beginnings(folder: str) -> Iterator[tuple[str, datetime | None]]:
    files, path = locate(folder)
    for name in folder_names(folder):
        yield name, files.get_file_info(f"{path}/{name}/{BEGUN}").mtime


def share(lake: LakeLayout, beside: LakeLayout, table_ids: Iterable[str]) -> bool:
    """Copy tables of a lake to another one; return false if one of them changed meanwhile."""
    wanted = list(table_ids)
    files, root = locate(lake.root)
    _, target = locate(beside.root)
    remove(beside.root)  # remains of an earlier try
    with files.open_output_stream(f"{target}/{BEGUN}"):
        pass
    before = _list_files(files, lake, wanted)

    def copy(path: str) -> bool:
        try:
            files.copy_file(path, f"{target}{path.removeprefix(root)}")
        except OSError:
            if files.get_file_info(path).type == FileType.File:
                raise
            return False
        return True

    with ThreadPoolExecutor(AT_ONCE) as threads:
        wanted_files = [path for path in before if not path.endswith(f"/{LOG}/{LAST}")]
        is_whole = all(list(threads.map(copy, wanted_files)))
    return is_whole and _commits(before) == _commits(_list_files(files, lake, wanted))


def _list_files(files: FileSystem, lake: LakeLayout, table_ids: Iterable[str]) -> list[str]:
    folders = [lake.counts_uri]
    for table_id in table_ids:
        pipeline = table_id.partition(".")[0]
        folders += (f"{lake.root}/{pipeline}/{name}" for name in folders_of(lake, table_id))
    found: list[FileInfo] = []
    for folder in folders:
        selector = FileSelector(locate(folder)[1], recursive=True, allow_not_found=True)
        found += files.get_file_info(selector)
    return [f.path for f in found if f.type == FileType.File]


def _commits(paths: Iterable[str]) -> set[str]:
    return {path for path in paths if COMMIT_PATH.fullmatch(path)}


@contextmanager
def overlay(lake: LakeLayout, table_ids: Iterable[str]) -> Iterator[LakeLayout]:
    """Yield a lake with these tables as they are now, which is removed afterwards.

    A caller that moves it elsewhere keeps it. Raises UsageError if the lake can't be linked to,
    Retryable if its tables changed meanwhile, each time.
    """
    wanted = list(table_ids)
    shared = copies(lake, _previews(lake)) if "://" in lake.root else _links(lake)
    with shared as (beside, share):
        share_whole(lake, share, wanted)
        yield beside


def share_whole(lake: LakeLayout, share: Share, table_ids: list[str]) -> None:
    """Share tables of a lake at one moment. Raises Retryable if they change each time."""
    if not any(share(table_ids) for _ in range(ATTEMPTS)):
        raise Retryable(
            f"the tables of {lake.root} changed while they were read",
            hint="wait until the run that writes them has ended",
        )


@contextmanager
def _links(lake: LakeLayout) -> Iterator[tuple[LakeLayout, Share]]:
    with _own_folder(Path(_previews(lake))) as root:
        yield LakeLayout(str(root)), lambda table_ids: _share(lake, root, list(table_ids))


def previews(lake: LakeLayout) -> list[str]:
    """Remove what killed previews of a lake have left; return the names of running ones.

    In an object store, a preview's remains count as running for a day.
    """
    if "://" in lake.root:
        remove_abandoned_copies(_previews(lake))
        return list_left(_previews(lake))
    folder = Path(_previews(lake))
    remove_abandoned(folder)
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def _previews(lake: LakeLayout) -> str:
    return f"{lake.root}/{PREVIEWS}"


def remove_abandoned(folder: Path) -> list[str]:
    """Remove the folders that no process holds any more, and return their names."""
    gone = []
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (held := lock(entry)) is not None:
            shutil.rmtree(entry, ignore_errors=True)
            os.close(held)
            gone.append(entry.name)
    return gone


@contextmanager
def _own_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder, held by a lock that ends with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    mine = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(mine, fcntl.LOCK_EX)  # nobody sweeps between the next two lines
        remove_abandoned(folder)
        root = folder / uuid4().hex
        root.mkdir()
        held = lock(root)
    finally:
        os.close(mine)
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
        if held is not None:
            os.close(held)


def lock(folder: Path) -> int | None:
    """Return an open lock on a folder; None if another process has one, or the folder is gone."""
    try:
        found = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(found)
        return None
    return found


def _share(lake: LakeLayout, root: Path, table_ids: list[str]) -> bool:
    before = _heads(lake, table_ids)
    shutil.rmtree(root, ignore_errors=True) if any(root.iterdir()) else None
    try:
        for table_id in table_ids:
            pipeline = table_id.partition(".")[0]
            for name in folders_of(lake, table_id):
                _share_folder(Path(lake.root, pipeline, name), root / pipeline / name)
        _share_folder(Path(lake.counts_uri), root / QUALITY / Path(lake.counts_uri).name)
    except FileNotFoundError:  # vacuumed or replaced meanwhile
        return False
    return _heads(lake, table_ids) == before


def _share_folder(folder: Path, to: Path) -> None:
    for root, inner, files in os.walk(folder):
        target = to / Path(root).relative_to(folder)
        target.mkdir(parents=True, exist_ok=True)
        is_log = LOG in target.parts
        for name in files:
            if is_log and name == LAST:
                continue
            source = Path(root, name)
            if COMMIT.fullmatch(name) if is_log else name.endswith(DATA):
                _link(source, target / name)
            else:
                shutil.copyfile(source, target / name)
        inner.sort()


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(
            f"{source} can't be linked to: {error.strerror}",
            hint="the lake's disk must allow hard links, and the lake be writable",
        ) from None


def _heads(lake: LakeLayout, table_ids: list[str]) -> dict[str, list[str]]:
    """Return the commits of each table, internal ones too."""
    found = {}
    for table_id in table_ids:
        pipeline = table_id.partition(".")[0]
        for name in folders_of(lake, table_id):
            log = Path(lake.root, pipeline, name, LOG)
            if log.is_dir():
                found[f"{pipeline}.{name}"] = sorted(path.name for path in log.glob("*.json"))
    return found


Settle = Callable[[], bool]
_COLUMNS = Schema([Field("n", PrimitiveType("long"))])


@dataclass(frozen=True)
class Began:
    """Table that an environment began with: Delta's own id, and the version."""

    table: str
    version: int


@dataclass(frozen=True)
class Environment:
    """One environment; `tables`: those that it began with, by id."""

    name: str
    created: datetime
    expires: datetime
    tables: Mapping[str, Began] = field(default_factory=dict)


def create(lake: LakeLayout, name: str, now: datetime, expires: datetime) -> Environment:
    """Share all tables of a lake with a new environment, whole or not at all.

    Raises UsageError if there is one of that name, Retryable if the tables change meanwhile.
    """
    folder = place(lake.root, name)
    if name in names(lake.root):
        raise _name_is_taken(name)
    with (_copy if "://" in folder else _link_table)(lake, folder) as (copy, settle):
        tables = {table_id: open_table(copy.uri(table_id)) for table_id in stored_tables(copy)}
        began = {n: Began(str(t.metadata().id), t.version()) for n, t in tables.items()}
        made = Environment(name, now, expires, began)
        _write(copy.root, made)
        passing("sharing", name)
        if not settle():
            raise _name_is_taken(name)
    return made


def read_environment(lake: str) -> Environment | None:
    """Return the environment that a lake is; None if it is none."""
    text = SmallFiles(lake).read(NOTE)
    if text is None:
        return None
    noted: dict[str, Any] = json.loads(text)
    times = {at: datetime.fromisoformat(noted[at]) for at in ("created", "expires")}
    tables = {name: Began(**began) for name, began in noted["tables"].items()}
    return Environment(noted["name"], **times, tables=tables)


def list_environments(lake: LakeLayout) -> list[Environment]:
    """Return the environments of a lake, by name."""
    found = (read_environment(there) for _, there in sorted(places(lake.root).items()))
    return [one for one in found if one]


def keep(lake: LakeLayout, name: str, expires: datetime) -> None:
    """Change the time at which an environment expires."""
    there = existing(lake.root, name)
    if noted := read_environment(there):
        _write(there, replace(noted, expires=expires))


def drop(lake: LakeLayout, name: str) -> None:
    """Remove an environment; once removal has begun, the environment no longer exists."""
    there = existing(lake.root, name)
    if "://" in there:
        remove(f"{place(lake.root, name)}/{CLAIM}")
        passing("dropping", name)
        remove(there)
        return
    leaving = Path(lake.root, PREVIEWS)
    leaving.mkdir(exist_ok=True)
    Path(there).rename(leaving / uuid4().hex)
    passing("dropping", name)
    remove_abandoned(leaving)


def expire(lake: LakeLayout, now: datetime) -> list[str]:
    """Remove the environments that have expired, and return their names."""
    if "://" in lake.root:
        remove_unfinished(lake)
    gone = [one.name for one in list_environments(lake) if one.expires <= now]
    for name in gone:
        drop(lake, name)
    return gone


def tables_of(lake: LakeLayout) -> list[str]:
    """Return the tables that lie in a lake, by the ids of those that are declared."""
    return list(dict.fromkeys(map(declared_id, stored_tables(lake))))


def remove_unfinished(lake: LakeLayout) -> list[str]:
    """Remove copies that nobody claimed for a day; return the places of younger ones."""
    found = []
    for name in folders(lake.root):
        folder = place(lake.root, name)
        kept = {CLAIM, (claimant(folder) or "").rpartition("/")[2]}
        remove_abandoned_copies(folder, kept)
        found += [f"{ENVIRONMENTS}/{name}/{one}" for one in list_left(folder) if one not in kept]
    return found


@contextmanager
def _link_table(lake: LakeLayout, folder: str) -> Iterator[tuple[LakeLayout, Settle]]:
    """Yield a lake with all tables of another, and a function that moves it to its folder."""
    target = Path(folder)
    with overlay(lake, tables_of(lake)) as copy:

        def settle() -> bool:
            target.parent.mkdir(exist_ok=True)
            rmtree(target, ignore_errors=True)  # left by a run during the drop
            try:
                Path(copy.root).rename(target)
            except OSError:
                return False
            return True

        yield copy, settle


@contextmanager
def _copy(lake: LakeLayout, folder: str) -> Iterator[tuple[LakeLayout, Settle]]:
    """Yield a lake with all tables of another, and a function that claims a folder for it.

    It is removed if it has not claimed the folder at the end.
    """
    copy = LakeLayout(f"{folder}/{uuid4().hex}")
    check_exclusive(f"{lake.root}/{ENVIRONMENTS}/{CLAIM}")
    try:
        share_whole(lake, lambda ids: share(lake, copy, ids), tables_of(lake))
        yield copy, lambda: _claim(folder, copy)
    finally:
        if claimant(folder) != copy.root:
            remove(copy.root)


def _claim(folder: str, copy: LakeLayout) -> bool:
    """Claim a folder; false if it belongs to another copy. The log shows who won."""
    uri, name = f"{folder}/{CLAIM}", copy.root.rpartition("/")[2]
    try:
        DeltaTable.create(uri, _COLUMNS, name=name, storage_options=options(uri))
    except (DeltaError, OSError):
        if claimant(folder) is None:
            raise
    return claimant(folder) == copy.root


def _write(lake: str, made: Environment) -> None:
    text = json.dumps(asdict(made), default=datetime.isoformat)
    SmallFiles(lake).write(NOTE, text.encode())


def _name_is_taken(name: str) -> UsageError:
    return UsageError(
        f"there is an environment {name!r} already",
        hint=f"`sluice env drop {name}` removes it; or give another name",
    )
