"""Dropped tables, kept for a week at `<lake>/__dropped/<pipeline>.<table>@<time>/`.

Moving a table there removes it from the lake; moving it back restores it. Folders are moved one by
one, so a note names a drop that has begun: the next attempt continues in the same folder.
"""

from datetime import UTC, datetime, timedelta

from sluice.delta.places.delta_rs import folder_names
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import move, remove
from sluice.delta.places.inventory import folders_of
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.places.small_files import SmallFiles
from sluice.language.internal import DROPPED, FORGOTTEN, NOTES, declared, internal

KEPT = timedelta(days=7)
TIME = "%Y%m%dT%H%M%SZ"


def begun(lake: LakeLayout) -> list[str]:
    """Return the tables whose drop began and did not end, by id."""
    return _notes(lake).names()


def drop(lake: LakeLayout, table_id: str, now: datetime) -> tuple[str, list[str]]:
    """Move a table with its internal tables; return the new place, and the names of its folders.

    Notes of deliveries go first. A source that has lost only these reads its files again. Notes of
    forgotten subjects stay, so that no later delivery restores their rows.
    """
    name = (_notes(lake).read(table_id) or b"").decode() or f"{table_id}@{now:{TIME}}"
    _notes(lake).write(table_id, name.encode())
    target, (pipeline, _, table) = f"{lake.root}/{DROPPED}/{name}", table_id.partition(".")
    going = {*folders_of(lake, table_id)} - {internal(table, FORGOTTEN)}
    for folder in sorted(sorted(going), key=_is_note, reverse=True):
        passing("dropping", folder)
        move(f"{lake.root}/{pipeline}/{folder}", f"{target}/{folder}")
    passing("dropped", table_id)
    return target, folder_names(target)


def end(lake: LakeLayout, table_id: str) -> None:
    """Note that the drop of a table is complete."""
    _notes(lake).delete(table_id)


def expire(lake: LakeLayout, now: datetime) -> list[str]:
    """Delete what was dropped a week ago, and return the tables by id."""
    gone = []
    for name in folder_names(f"{lake.root}/{DROPPED}"):
        table_id, _, text = name.rpartition("@")
        if table_id and datetime.strptime(text, TIME).replace(tzinfo=UTC) + KEPT <= now:
            remove(f"{lake.root}/{DROPPED}/{name}")
            gone.append(table_id)
    return gone


def kept(lake: LakeLayout) -> list[str]:
    """Return the names of the folders of dropped tables, each `pipeline.table@time`."""
    return folder_names(f"{lake.root}/{DROPPED}")


def folders_in(lake: LakeLayout, name: str) -> list[str]:
    """Return the places of a dropped table and of its internal tables."""
    root = f"{lake.root}/{DROPPED}/{name}"
    return [f"{root}/{folder}" for folder in folder_names(root)]


def _is_note(folder: str) -> bool:
    return folder in {internal(declared(folder), note) for note in NOTES}


def _notes(lake: LakeLayout) -> SmallFiles:
    return SmallFiles(f"{lake.root}/{DROPPED}")
