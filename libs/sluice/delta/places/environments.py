"""Environments: a lake's tables, shared at the versions that they have now.

An environment is a permanent overlay: its files are links, or copies in a store, so changes of the
lake can't remove them. A file in it records its times and its tables' first versions.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

from sluice.declare.environment_folders import NOTE, existing, names, place, places
from sluice.delta.places import claims
from sluice.delta.places.claims import Settle, tables_of
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.failpoint import passing
from sluice.delta.places.inventory import stored
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.places.overlay import overlay, remove_abandoned
from sluice.delta.places.small_files import SmallFiles
from sluice.errors import UsageError
from sluice.language.internal import PREVIEWS


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
        raise _taken(name)
    with (claims.beside if "://" in folder else _beside)(lake, folder) as (beside, settle):
        began = {table_id: _began(beside.uri(table_id)) for table_id in stored(beside)}
        made = Environment(name, now, expires, began)
        _write(beside.root, made)
        passing("sharing", name)
        if not settle():
            raise _taken(name)
    return made


@contextmanager
def _beside(lake: LakeLayout, folder: str) -> Iterator[tuple[LakeLayout, Settle]]:
    """Yield a lake with all tables of another, and a function that moves it to its folder."""
    target = Path(folder)
    with overlay(lake, tables_of(lake)) as beside:

        def settle() -> bool:
            target.parent.mkdir(exist_ok=True)
            rmtree(target, ignore_errors=True)  # left by a run during the drop
            try:
                Path(beside.root).rename(target)
            except OSError:
                return False
            return True

        yield beside, settle


def read(lake: str) -> Environment | None:
    """Return the environment that a lake is; None if it is none."""
    text = SmallFiles(lake).read(NOTE)
    if text is None:
        return None
    noted: dict[str, Any] = json.loads(text)
    times = {at: datetime.fromisoformat(noted[at]) for at in ("created", "expires")}
    tables = {name: Began(**began) for name, began in noted["tables"].items()}
    return Environment(noted["name"], **times, tables=tables)


def listed(lake: LakeLayout) -> list[Environment]:
    """Return the environments of a lake, by name."""
    found = (read(there) for _, there in sorted(places(lake.root).items()))
    return [one for one in found if one]


def keep(lake: LakeLayout, name: str, expires: datetime) -> None:
    """Change the time at which an environment expires."""
    there = existing(lake.root, name)
    if noted := read(there):
        _write(there, replace(noted, expires=expires))


def drop(lake: LakeLayout, name: str) -> None:
    """Remove an environment; once removal has begun, the environment no longer exists."""
    there = existing(lake.root, name)
    if "://" in there:
        claims.drop(lake, name, there)
        return
    leaving = Path(lake.root, PREVIEWS)
    leaving.mkdir(exist_ok=True)
    Path(there).rename(leaving / uuid4().hex)
    passing("dropping", name)
    remove_abandoned(leaving)


def expire(lake: LakeLayout, now: datetime) -> list[str]:
    """Remove the environments that have expired, and return their names."""
    if "://" in lake.root:
        claims.unfinished(lake)
    gone = [one.name for one in listed(lake) if one.expires <= now]
    for name in gone:
        drop(lake, name)
    return gone


def _began(uri: str) -> Began:
    table = open_table(uri)
    return Began(str(table.metadata().id), table.version())


def _write(lake: str, made: Environment) -> None:
    text = json.dumps(asdict(made), default=datetime.isoformat)
    SmallFiles(lake).write(NOTE, text.encode())


def _taken(name: str) -> UsageError:
    return UsageError(
        f"there is an environment {name!r} already",
        hint=f"`sluice env drop {name}` removes it; or give another name",
    )
