"""What a day of shopping costs, and from how much data on that is less than computing all again.

PYTHONPATH=tools python -m tests.benchmarks.retail [--days 31] [--cold 3]

Days are delivered to a fresh project, brought up by one long run, then each further day by a
process of its own. DuckDB, in a process of its own too, reads every day landed so far and computes
all views as Parquet: no changelog, no history, no checks. Seconds are of the wall clock, by
the median; memory is the most that Python and Java held together.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from daemons import tree
from gauge import Gauge
from landing import split
from shopping import FIRST_DAY, YEAR_END
from stack import ROOT

YEAR = (YEAR_END - FIRST_DAY).days
PAST = (7, 31, 90, 180, YEAR)  # days that the other side computes again


@dataclass(frozen=True)
class Run:
    """One command: its seconds and the most bytes it held."""

    seconds: float
    bytes: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--days", type=int, default=31, help="days of the long run")
    parser.add_argument("--cold", type=int, default=3, help="days after it, a process each")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        shutil.copytree(ROOT / "config", project / "config")
        split(project / "landing", FIRST_DAY, YEAR_END)
        again = {days: recompute(project, days) for days in PAST}
        rows = ours(project, asked.days, asked.cold)
    show(rows, again, rows[-1][1].seconds)


def ours(project: Path, days: int, cold: int) -> list[tuple[str, Run]]:
    """Each of Sluice's commands with what it cost; the last is a cold day's run."""
    first, after = FIRST_DAY, FIRST_DAY + timedelta(days=days)
    whole = sluice(project, "run", "retail", *days_of(first, days))
    nothing = sluice(project, "run", "retail", *days_of(first, days))
    tiny = sluice(project, "ingest", "retail.coupon_redemptions", *days_of(after, 1))
    each = [after + timedelta(days=number) for number in range(cold)]
    runs = [sluice(project, "run", "retail", *days_of(day, 1)) for day in each]
    return [
        (f"a day within a run of {days}", Run(whole.seconds / days, whole.bytes)),
        ("the same run again, nothing new", nothing),
        ("a tiny delivery, a process of its own", tiny),
        ("a new day, a process of its own", median(runs)),
    ]


def days_of(first: date, count: int) -> list[str]:
    return ["--start", str(first), "--end", str(first + timedelta(days=count))]


def sluice(project: Path, *arguments: str) -> Run:
    return measured(project, "-m", "sluice.cli.main", *arguments, "--config", "config")


def recompute(project: Path, days: int) -> Run:
    """All views from the first so many days."""
    return measured(project, "-m", "tests.benchmarks.retail_again", "landing", str(days))


def measured(project: Path, *command: str) -> Run:
    places = {"SLUICE_LAKE": str(project / "lake"), "SLUICE_LANDING": str(project / "landing")}
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    environ = os.environ | places | {"PYTHONPATH": path}
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, *command], cwd=project, env=environ, stdout=subprocess.DEVNULL
    ) as process:
        with Gauge(partial(tree, psutil.Process(process.pid))) as gauge:
            code = process.wait()
        seconds = time.monotonic() - began
    if code:
        sys.exit(f"{' '.join(command)} ended with {code}")
    return Run(seconds, sum(gauge.peaks.values()))


def median(runs: Sequence[Run]) -> Run:
    return Run(statistics.median(run.seconds for run in runs), max(run.bytes for run in runs))


def show(ours: Sequence[tuple[str, Run]], again: dict[int, Run], cold: float) -> None:
    table = Table("work", "seconds", "MB")
    for name, run in ours:
        table.add_row(name, f"{run.seconds:.2f}", f"{run.bytes / 2**20:.0f}" if run.bytes else "")
    for days, run in again.items():
        table.add_row(f"DuckDB computes {days} days again", f"{run.seconds:.2f}", "")
    console = Console()
    console.print(table)
    console.print(crossing(again, cold))


def crossing(again: dict[int, Run], cold: float) -> str:
    """Say from which day on a new day costs less than computing all again, along a line."""
    slope, begin = statistics.linear_regression(
        list(again), [run.seconds for run in again.values()]
    )
    day = (cold - begin) / slope
    return (
        f"A cold day of Sluice costs less than computing all again from day {day:,.0f} on "
        f"({day / YEAR:.1f} years of this data)."
    )


if __name__ == "__main__":
    main()
