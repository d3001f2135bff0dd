"""Environments on the disk: a lake's tables, shared at the versions that they have now.

An environment is an overlay that is kept: its files are links, so nothing that happens to the lake
takes them away. A file in it notes its times and the tables that it began with.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

from sluice.declare.environment import NOTE, existing, names, place
from sluice.delta.places.failpoint import passing
from sluice.delta.places.inventory import stored
from sluice.delta.places.lake import LakeLayout
from sluice.delta.places.overlay import FOLDER, overlay, sweep
from sluice.delta.places.small_files import SmallFiles
from sluice.delta.places.stores import open_table
from sluice.errors import UsageError
from sluice.language.internal import declared


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
    target = Path(place(lake.root, name))
    if name in names(lake.root):  # refuses an object store
        raise _taken(name)
    tables = dict.fromkeys(map(declared, stored(lake)))
    with overlay(lake, tables) as beside:
        began = {table_id: _began(beside.uri(table_id)) for table_id in stored(beside)}
        made = Environment(name, now, expires, began)
        _write(beside.root, made)
        passing("sharing", name)
        target.parent.mkdir(exist_ok=True)
        rmtree(target, ignore_errors=True)  # left by a run that a drop has overtaken
        try:
            Path(beside.root).rename(target)
        except OSError:
            raise _taken(name) from None
    return made


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
    found = (read(place(lake.root, name)) for name in names(lake.root))
    return [one for one in found if one]


def keep(lake: LakeLayout, name: str, expires: datetime) -> None:
    """Let an environment expire at another time."""
    there = existing(lake.root, name)
    if noted := read(there):
        _write(there, replace(noted, expires=expires))


def drop(lake: LakeLayout, name: str) -> None:
    """Remove an environment; once it has begun, it is none any more."""
    there = Path(existing(lake.root, name))
    leaving = Path(lake.root, FOLDER)
    leaving.mkdir(exist_ok=True)
    there.rename(leaving / uuid4().hex)
    passing("dropping", name)
    sweep(leaving)


def expire(lake: LakeLayout, now: datetime) -> list[str]:
    """Remove the environments that have expired, and return their names."""
    if "://" in lake.root:
        return []
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
