"""CPU seconds of a day of shopping by phase: of a cold run, and of a day of a process that goes on.

PYTHONPATH=tools python -m tests.benchmarks.retail_profile [--days 7] [--warm 6] [--repeat 3]

A process of its own brings up all days; then others, each from a copy of that lake, run the next
day (cold) or days with all tables each (warm). Tables are taken one after the other. A phase
has the CPU of all threads while it runs, without the phases inside it; of the repeats, the median.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.benchmarks.retail import days_of, sluice

from landing import split
from shopping import FIRST_DAY
from stack import ROOT


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--days", type=int, default=7, help="days before those that are measured")
    parser.add_argument("--warm", type=int, default=6, help="days of the process that goes on")
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place, after = Path(folder), FIRST_DAY + timedelta(days=asked.days)
        shutil.copytree(ROOT / "config", place / "config")
        split(place / "landing", FIRST_DAY, after + timedelta(days=asked.warm + 1))
        sluice(place, "run", "retail", *days_of(FIRST_DAY, asked.days))
        (place / "lake").rename(place / "before")
        cold = [phases(place, after, 0) for _ in range(asked.repeat)]
        warm = [phases(place, after, asked.warm) for _ in range(asked.repeat)]
    show(cold, warm)


def phases(place: Path, first: date, warm: int) -> dict[str, float]:
    """Return the CPU seconds of each phase; of a day, if some days are to be run behind a first."""
    shutil.copytree(place / "before", place / "lake")
    places = {"SLUICE_LAKE": str(place / "lake"), "SLUICE_LANDING": str(place / "landing")}
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    command = (sys.executable, "-m", "tests.benchmarks.phases", str(first), str(warm))
    environ = os.environ | places | {"PYTHONPATH": path}
    said = subprocess.run(command, cwd=place, env=environ, check=True, stdout=subprocess.PIPE)
    shutil.rmtree(place / "lake")
    found: dict[str, float] = json.loads(said.stdout.splitlines()[-1])
    return found


def show(cold: list[dict[str, float]], warm: list[dict[str, float]]) -> None:
    table = Table("phase", "cold day", "warm day")
    names = {name for found in (*cold, *warm) for name in found}
    for name in sorted(names, key=lambda name: -_median(cold, name)):
        table.add_row(name, *(f"{_median(runs, name):.2f}" for runs in (cold, warm)))
    sums = [statistics.median(sum(found.values()) for found in runs) for runs in (cold, warm)]
    table.add_row("all", *(f"{seconds:.2f}" for seconds in sums))
    Console().print(table)


def _median(runs: list[dict[str, float]], name: str) -> float:
    return statistics.median(found.get(name, 0.0) for found in runs)


if __name__ == "__main__":
    main()
