"""What tests by chance share: seeds, and readings without Spark."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import Any

from tests.files.files import Files

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.local_session import Session, interpreting

SEED = 25
IS_DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SECONDS = float(os.environ.get("SLUICE_VALUES_SECONDS", "240"))
AT_ONCE, PARTS = 64, 4


def seeds() -> Iterator[int]:
    """One seed; with `HYPOTHESIS_PROFILE=deep`, others for so many seconds."""
    if not IS_DEEP:
        yield SEED
        return
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        yield SystemRandom().randrange(10**9)


@dataclass
class Told:
    """What readings without Spark have shown: how much was read, what was left to Spark."""

    read: int = 0
    refused: int = 0
    wrong: list[Any] = field(default_factory=list)


Part = list[Any]
Differ = Callable[[Files, Part], list[Any]]


def read_here(folder: Path, made: Part, differ: Differ) -> Told:
    """Read what was made without Spark. `differ` names what was read otherwise than it should.

    What is refused together is read in parts, until each is read or refused by itself.
    """
    told, session = Told(), Session()
    with interpreting(session):
        files = Files(session, folder)  # type: ignore[arg-type]
        for at in range(0, len(made), AT_ONCE):
            _read(told, files, made[at : at + AT_ONCE], differ)
    return told


def _read(told: Told, files: Files, part: Part, differ: Differ) -> None:
    try:
        found = differ(files, part)
    except UnsupportedLocally:
        told.refused += len(part) == 1
        for nth in range(PARTS if len(part) > 1 else 0):
            if smaller := part[nth::PARTS]:
                _read(told, files, smaller, differ)
    else:
        told.read += len(part)
        told.wrong += found
