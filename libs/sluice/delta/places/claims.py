"""Environments in an object store: whole copies of a lake's tables, which claim a name.

A store can't rename folders. So each copy has its own folder, and the first commit of the table
`claim` names the copy that owns a name. The store lets only one writer make this commit. A copy
without a name is being created, or was left by a killed process.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from sluice.declare.environment_folders import CLAIM, claimed, folders, place
from sluice.delta.places import copied
from sluice.delta.places.delta_rs import options
from sluice.delta.places.exclusive import check_exclusive
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import remove
from sluice.delta.places.inventory import stored
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.places.overlay import share_whole
from sluice.language.internal import ENVIRONMENTS, declared

Settle = Callable[[], bool]
_COLUMNS = Schema([Field("n", PrimitiveType("long"))])


@contextmanager
def beside(lake: LakeLayout, folder: str) -> Iterator[tuple[LakeLayout, Settle]]:
    """Yield a lake with all tables of another, and a function that claims a folder for it.

    It is removed if it has not claimed the folder at the end.
    """
    copy = LakeLayout(f"{folder}/{uuid4().hex}")
    check_exclusive(f"{lake.root}/{ENVIRONMENTS}/{CLAIM}")
    try:
        share_whole(lake, lambda ids: copied.share(lake, copy, ids), tables_of(lake))
        yield copy, lambda: _claim(folder, copy)
    finally:
        if claimed(folder) != copy.root:
            remove(copy.root)


def tables_of(lake: LakeLayout) -> list[str]:
    """Return the tables that lie in a lake, by the ids of those that are declared."""
    return list(dict.fromkeys(map(declared, stored(lake))))


def drop(lake: LakeLayout, name: str, there: str) -> None:
    """Take its name from an environment, then remove it."""
    remove(f"{place(lake.root, name)}/{CLAIM}")
    passing("dropping", name)
    remove(there)


def unfinished(lake: LakeLayout) -> list[str]:
    """Remove copies that nobody claimed for a day; return the places of younger ones."""
    found = []
    for name in folders(lake.root):
        folder = place(lake.root, name)
        kept = {CLAIM, (claimed(folder) or "").rpartition("/")[2]}
        copied.remove_abandoned(folder, kept)
        found += [f"{ENVIRONMENTS}/{name}/{one}" for one in copied.left(folder) if one not in kept]
    return found


def _claim(folder: str, copy: LakeLayout) -> bool:
    """Claim a folder; false if it belongs to another copy. The log shows who won."""
    uri, name = f"{folder}/{CLAIM}", copy.root.rpartition("/")[2]
    try:
        DeltaTable.create(uri, _COLUMNS, name=name, storage_options=options(uri))
    except (DeltaError, OSError):
        if claimed(folder) is None:
            raise
    return claimed(folder) == copy.root
