"""Tables of a lake in an object store, copied by the store itself into a separate folder.

A store has no links and no locks. A copy costs two requests for each file, and no data passes
through this process. The copies of a killed process are removed a day after it began.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from sluice.delta.places.delta_rs import folder_names, located
from sluice.delta.places.folders import remove
from sluice.delta.places.inventory import folders_of
from sluice.delta.places.lake_layout import LakeLayout

LEFT_AFTER = timedelta(days=1)
LAST = "/_delta_log/_last_checkpoint"  # it may name a checkpoint that is newer than the copy
COMMIT = re.compile(r".*/_delta_log/\d{20}\.json")
AT_ONCE = 16  # requests
BEGUN = "begun"

Share = Callable[[Iterable[str]], bool]


@contextmanager
def copies(lake: LakeLayout, folder: str) -> Iterator[tuple[LakeLayout, Share]]:
    """Yield a new lake in `folder` and a function that copies tables of `lake` to it; remove it at
    the end.

    The copying returns false if one of the tables changed meanwhile.
    """
    remove_abandoned(folder)
    beside = LakeLayout(f"{folder}/{uuid4().hex}")
    try:
        yield beside, lambda table_ids: share(lake, beside, table_ids)
    finally:
        remove(beside.root)


def remove_abandoned(folder: str, kept: Collection[str] = ()) -> None:
    """Remove the lakes in a folder that were begun long ago, except those to be kept."""
    for name, began in _begun(folder):
        if name in kept:
            continue
        if began is None or datetime.now(UTC) - began > LEFT_AFTER:
            remove(f"{folder}/{name}")


def left(folder: str) -> list[str]:
    """Return the names of the lakes in a folder."""
    return [name for name, _ in _begun(folder)]


def _begun(folder: str) -> Iterator[tuple[str, datetime | None]]:
    files, path = located(folder)
    for name in folder_names(folder):
        yield name, files.get_file_info(f"{path}/{name}/{BEGUN}").mtime


def share(lake: LakeLayout, beside: LakeLayout, table_ids: Iterable[str]) -> bool:
    """Copy tables of a lake to another one; return false if one of them changed meanwhile."""
    wanted = list(table_ids)
    files, root = located(lake.root)
    _, target = located(beside.root)
    remove(beside.root)  # remains of an earlier try
    with files.open_output_stream(f"{target}/{BEGUN}"):
        pass
    before = _listed(files, lake, wanted)

    def copy(path: str) -> bool:
        try:
            files.copy_file(path, f"{target}{path.removeprefix(root)}")
        except OSError:
            if files.get_file_info(path).type == FileType.File:
                raise
            return False
        return True

    with ThreadPoolExecutor(AT_ONCE) as threads:
        is_whole = all(list(threads.map(copy, (p for p in before if not p.endswith(LAST)))))
    return is_whole and _commits(before) == _commits(_listed(files, lake, wanted))


def _listed(files: FileSystem, lake: LakeLayout, table_ids: Iterable[str]) -> list[str]:
    """Return the paths of all files of these tables, and of the counts of batches."""
    folders = [lake.counts_uri]
    for table_id in table_ids:
        pipeline = table_id.partition(".")[0]
        folders += (f"{lake.root}/{pipeline}/{name}" for name in folders_of(lake, table_id))
    found: list[FileInfo] = []
    for folder in folders:
        selector = FileSelector(located(folder)[1], recursive=True, allow_not_found=True)
        found += files.get_file_info(selector)
    return [f.path for f in found if f.type == FileType.File]


def _commits(paths: Iterable[str]) -> set[str]:
    return {path for path in paths if COMMIT.fullmatch(path)}
