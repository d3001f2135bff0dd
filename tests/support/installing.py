"""Servers of tests that come from another language's registry, installed once into `.cache`.

`python -m tests.support.installing` installs all of them, with any Python. Tests install what is
missing.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

BY_GO = {  # packages and versions, by the name of their program
    "versitygw": ("github.com/versity/versitygw/cmd/versitygw", "v1.8.0"),
    "fake-gcs-server": ("github.com/fsouza/fake-gcs-server", "v1.56.1"),
}
AZURITE = "3.35.0"
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
        if __name__ == "__main__":
            sys.exit(f"error: {what}; {why}")
        import pytest

        pytest.exit(f"{what}; {why}", returncode=1)


def built_by_go(name: str) -> str:
    """Return the program of that name, of a package of Go's proxy, which is built once."""
    package, version = BY_GO[name]
    folder = CACHE / name / version
    if not (folder / name).is_file():
        install(["go", "install", f"{package}@{version}"], folder, {"GOBIN": str(folder)})
    return str(folder / name)


def azurite() -> str:
    """Return Azurite's program; npm installs it once."""
    folder = CACHE / "azurite" / AZURITE
    program = folder / "node_modules" / ".bin" / "azurite-blob"
    if not program.is_file():
        install(["npm", "install", "--no-audit", "--no-fund", f"azurite@{AZURITE}"], folder)
    return str(program)


if __name__ == "__main__":
    azurite()
    for name in BY_GO:
        built_by_go(name)
