"""Environments: a lake's tables, shared at the versions that they have now.

An environment is a permanent overlay: its files are links, or copies in a store, so changes of the
lake can't remove them. A file in it records its times and its tables' first versions.

A store can't rename folders. So each copy has its own folder there, and the first commit of the
table `claim` names the copy that owns a name. The store lets only one writer make this commit. A
copy without a name is being created, or was left by a killed process.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

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
from sluice.delta.places.delta_rs import open_table, options
from sluice.delta.places.exclusive import check_exclusive
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import SmallFiles, remove
from sluice.delta.places.inventory import stored_tables
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.places.overlay import (
    list_left,
    overlay,
    remove_abandoned,
    remove_abandoned_copies,
    share,
    share_whole,
)
from sluice.errors import UsageError
from sluice.language.names import ENVIRONMENTS, PREVIEWS, declared_id

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
    with (_copy if "://" in folder else _link)(lake, folder) as (copy, settle):
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
def _link(lake: LakeLayout, folder: str) -> Iterator[tuple[LakeLayout, Settle]]:
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
