"""The wheel, in an environment that has what it requires and nothing else, without a network."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from sluice.extras import DISTRIBUTION

ROOT = Path(__file__).parents[2]
UV = str(Path(sys.executable).with_name("uv"))


def run(*command: str, cwd: Path, code: int = 0, **more: str) -> str:
    """What a command prints that ends with this code."""
    bare = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_REMOTE")}
    done = subprocess.run(
        command, cwd=cwd, env=bare | more, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def built(folder: Path) -> str:
    """The wheel of this checkout."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    return str(wheel)


def virtualenv(folder: Path, *packages: str, extra: str = "") -> Path:
    """The commands of a new environment: Sluice with one extra, other packages without theirs."""
    run(UV, "venv", "--python", sys.executable, str(folder / "venv"), cwd=folder)
    install = (UV, "pip", "install", "--offline", "--no-deps", "--python", str(folder / "venv"))
    run(
        *install, built(folder / "dist"), *packages, *needed(DISTRIBUTION, set(), extra), cwd=folder
    )
    return folder / "venv/bin"


def needed(name: str, found: set[str], extra: str = "") -> Iterator[str]:
    """Yield the pins of what a package with an extra requires, as they are installed here."""
    for line in distribution(name).requires or ():
        wanted = Requirement(line)
        if wanted.name in found or (wanted.marker and not wanted.marker.evaluate({"extra": extra})):
            continue
        found.add(wanted.name)
        yield f"{wanted.name}=={distribution(wanted.name).version}"
        yield from needed(wanted.name, found)
