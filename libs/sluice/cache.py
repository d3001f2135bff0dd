"""Folder of files that Sluice creates or fetches for this machine: jars, Java's classes, answers
and more.

It is `SLUICE_CACHE` if set, `.cache` in a checkout, otherwise the user's cache folder. Everything
in it can be deleted at any time.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder; it need not exist yet."""
    if chosen := environ.get("SLUICE_CACHE"):
        return Path(chosen).absolute()
    if (CHECKOUT / "pyproject.toml").is_file() and (CHECKOUT / "libs" / "sluice").is_dir():
        return CHECKOUT / ".cache"
    home = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "sluice"


def write_whole(file: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a file whole or not at all, because processes that start together may all write it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_text(text, "utf-8")
    draft.chmod(mode)
    draft.replace(file)


def rows_folder(table: str) -> Path:
    """Return the folder with this machine's index of a table's rows.

    `table`: its folder, or its URI in a store.
    """
    place = table if "://" in table else os.path.realpath(table)
    name = hashlib.sha256(os.fsencode(place)).hexdigest()[:32]
    return cache_folder() / "rows" / name


def discard_rows(table: str) -> None:
    """Remove this machine's index of a table: its rows were erased, or it is no longer there."""
    shutil.rmtree(rows_folder(table), ignore_errors=True)
