"""A lake beside a lake: the same tables at the same versions, whose writes don't reach the first.

Data files and commits are hard links, so the cost is one name per file. No writer changes these in
place: new rows are new files, and upkeep removes names. Checkpoints and notes are copied. The
folder belongs to its process while the process holds a lock on it. The next process removes the
folder of a killed one. In an object store all files are copied.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from sluice.delta.places import copied
from sluice.delta.places.folders import LOG
from sluice.delta.places.inventory import folders_of
from sluice.delta.places.lake_layout import LakeLayout
from sluice.errors import Retryable, UsageError
from sluice.language.internal import PREVIEWS, QUALITY

LAST = "_last_checkpoint"
DATA, COMMIT = ".parquet", re.compile(r"\d{20}\.json")
ATTEMPTS = 3


@contextmanager
def overlay(lake: LakeLayout, table_ids: Iterable[str]) -> Iterator[LakeLayout]:
    """Yield a lake with these tables as they are now, which is removed afterwards.

    A caller that moves it elsewhere keeps it. Raises UsageError if the lake can't be linked to,
    Retryable if its tables changed meanwhile, each time.
    """
    wanted = list(table_ids)
    shared = copied.copies(lake, _previews(lake)) if "://" in lake.root else _links(lake)
    with shared as (beside, share):
        share_whole(lake, share, wanted)
        yield beside


def share_whole(lake: LakeLayout, share: copied.Share, table_ids: list[str]) -> None:
    """Share tables of a lake at one moment. Raises Retryable if they change each time."""
    if not any(share(table_ids) for _ in range(ATTEMPTS)):
        raise Retryable(
            f"the tables of {lake.root} changed while they were read",
            hint="wait until the run that writes them has ended",
        )


@contextmanager
def _links(lake: LakeLayout) -> Iterator[tuple[LakeLayout, copied.Share]]:
    with _own_folder(Path(_previews(lake))) as root:
        yield LakeLayout(str(root)), lambda table_ids: _share(lake, root, list(table_ids))


def previews(lake: LakeLayout) -> list[str]:
    """Remove what killed previews of a lake have left; return the names of running ones.

    In an object store, a preview's remains count as running for a day.
    """
    if "://" in lake.root:
        copied.remove_abandoned(_previews(lake))
        return copied.left(_previews(lake))
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
    """Put the tables into the folder; false if one of them changed meanwhile."""
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
    for place, folders, files in os.walk(folder):
        target = to / Path(place).relative_to(folder)
        target.mkdir(parents=True, exist_ok=True)
        is_log = LOG in target.parts
        for name in files:
            if is_log and name == LAST:
                continue  # it may name a checkpoint that is newer than the copy
            source = Path(place, name)
            if COMMIT.fullmatch(name) if is_log else name.endswith(DATA):
                _link(source, target / name)
            else:
                shutil.copyfile(source, target / name)
        folders.sort()


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
