"""Environments of a lake: separate lakes below `<lake>/__env/<name>`.

`SLUICE_ENV` chooses one. All reads and writes then go there. On a disk the folder is the lake, and
must contain a file that records its first versions. In an object store, the only commit of the
table `claim` names the lake that owns the name.
"""

import json
from collections.abc import Mapping
from os import environ as process_environ
from pathlib import Path

from sluice.errors import UsageError
from sluice.language.names import ENVIRONMENTS, check_name, near

VARIABLE = "SLUICE_ENV"
NOTE = "environment"
CLAIM = "claim"
_ONLY_COMMIT = f"{CLAIM}/_delta_log/{0:020}.json"


def names(lake: str) -> list[str]:
    """Return the names of the environments of a lake."""
    return sorted(places(lake))


def places(lake: str) -> dict[str, str]:
    """Return the places of a lake's environments, by name."""
    if "://" in lake:
        claims = ((name, claimant(place(lake, name))) for name in folders(lake))
        return {name: there for name, there in claims if there}
    found = Path(lake, ENVIRONMENTS).glob(f"*/{NOTE}.json")
    return {note.parent.name: str(note.parent) for note in found}


def place(lake: str, name: str) -> str:
    """Return the folder of an environment. Raises UsageError for an invalid name."""
    try:
        folder = f"{ENVIRONMENTS}/{check_name(name)}"
    except ValueError as error:
        raise UsageError(f"environment {error}", hint="for example dev") from None
    return f"{lake.rstrip('/')}/{folder}" if "://" in lake else str(Path(lake, folder))


def folders(lake: str) -> list[str]:
    """Return the names of a lake's environments in a store, claimed or not."""
    from sluice.declare.filesystems import folder_names

    return folder_names(f"{lake.rstrip('/')}/{ENVIRONMENTS}")


def claimant(folder: str) -> str | None:
    """Return the lake to which an environment's folder in a store belongs; None if to none."""
    from sluice.declare.filesystems import locate

    files, path = locate(f"{folder}/{_ONLY_COMMIT}")
    try:
        with files.open_input_stream(path) as stream:
            actions = [json.loads(line) for line in stream.read().splitlines()]
    except FileNotFoundError:
        return None
    return next(f"{folder}/{a['metaData']['name']}" for a in actions if "metaData" in a)


def existing(lake: str, name: str) -> str:
    """Return the place of an environment. Raises UsageError, with the existing ones."""
    known = places(lake)
    if name not in known:
        guess = f"; did you mean {match!r}?" if (match := near(name, known)) else ""
        there = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"the lake {lake} has no environment {name!r}{guess}",
            hint=f"`sluice env create {name}` makes it; there are: {there}",
        )
    return known[name]


def of_base(environ: Mapping[str, str] = process_environ) -> dict[str, str]:
    """Return the process's variables without the choice of an environment."""
    return {name: value for name, value in environ.items() if name != VARIABLE}
