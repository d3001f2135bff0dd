"""Environments of a lake: lakes of their own beside it, at `<lake>/__env/<name>`.

`SLUICE_ENV` chooses one. Whatever is read and written then lies there. A file in it notes what it
began with, so a folder without that file is none.
"""

from collections.abc import Mapping
from os import environ as process_environ
from pathlib import Path

from sluice.errors import UsageError
from sluice.language.names import check_name, near

VARIABLE = "SLUICE_ENV"
FOLDER = "__env"
NOTE = "environment"


def names(lake: str) -> list[str]:
    """Return the names of the environments of a lake. Raises UsageError for an object store."""
    if "://" in lake:
        raise UsageError(
            f"{lake} is an object store, which has no environments: they share files by links",
            hint="a lake on a disk can have them; leave out --env and SLUICE_ENV",
        )
    return sorted(note.parent.name for note in Path(lake, FOLDER).glob(f"*/{NOTE}.json"))


def place(lake: str, name: str) -> str:
    """Return where an environment lies, or would. Raises UsageError for what is no name."""
    try:
        return str(Path(lake, FOLDER, check_name(name)))
    except ValueError as error:
        raise UsageError(f"environment {error}", hint="for example dev") from None


def existing(lake: str, name: str) -> str:
    """Return where an environment lies. Raises UsageError, with those that there are."""
    known = names(lake)
    if name not in known:
        guess = f"; did you mean {match!r}?" if (match := near(name, known)) else ""
        raise UsageError(
            f"the lake {lake} has no environment {name!r}{guess}",
            hint=f"`sluice env create {name}` makes it; there are: {', '.join(known) or 'none'}",
        )
    return place(lake, name)


def of_base(environ: Mapping[str, str] = process_environ) -> dict[str, str]:
    """Return the process's variables without the choice of an environment."""
    return {name: value for name, value in environ.items() if name != VARIABLE}
