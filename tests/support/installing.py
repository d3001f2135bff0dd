"""Servers of tests that come from another language's registry, installed once into `.cache`."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[2] / ".cache"


def install(command: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None) -> None:
    """Run a command in a folder; what it can't install ends all tests, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        why = f"it says: {done.stdout[-2000:]}" if done.returncode else ""
    except FileNotFoundError:
        why = f"there is no `{command[0]}` on the path"
    if why:
        what = f"{command[0]} could not install {command[-1]}, which these tests need"
        pytest.exit(f"{what}; {why}", returncode=1)


def built_by_go(package: str, version: str) -> str:
    """Return the program of a package of Go's proxy, which is built once."""
    name = package.rpartition("/")[2]
    folder = CACHE / name / version
    if not (folder / name).is_file():
        install(["go", "install", f"{package}@{version}"], folder, {"GOBIN": str(folder)})
    return str(folder / name)
