"""What a day of shopping costs, and from how much data on that is less than computing all again.

PYTHONPATH=tools python -m tests.benchmarks.retail [--days 31] [--warm 32] [--cold 3] [--year]

Days are delivered to a fresh project, brought up by one long run. Further days are brought up one
by one: some within one process, each with all tables, and then some by a process of their own.
DuckDB, in a process of its own too, reads every day landed so far and computes all views as
Parquet: no changelog, no history, no checks. Seconds are of the wall clock, by the median for
processes; memory is the most that Python and Java held together. Each figure stands beside its
goal. With `--airflow`, a day and then a week are backfilled through a local Airflow.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table
from tests.benchmarks import airflow

from daemons import tree
from gauge import Gauge
from landing import split
from shopping import FIRST_DAY, YEAR_END
from stack import ROOT

YEAR = (YEAR_END - FIRST_DAY).days
PAST = (7, 31, 90, 180, YEAR)  # days that the other side computes again
CROSSED = 90  # the day from which a new day should cost less than computing all again
MOST = 600  # MB that a run of a day may hold


@dataclass(frozen=True)
class Run:
    """One command: its seconds, the most bytes it held, those of a JVM, and what it printed."""

    seconds: float
    bytes: int = 0
    java: int = 0
    said: str = ""


@dataclass(frozen=True)
class Figure:
    """One line of the table. `goal`: the most seconds that are wanted, `most`: MB without a JVM."""

    work: str
    run: Run
    goal: float | None = None
    most: int | None = None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--days", type=int, default=31, help="days of the long run")
    parser.add_argument("--cold", type=int, default=3, help="days after it, a process each")
    parser.add_argument("--warm", type=int, default=32, help="days after these, one process")
    parser.add_argument("--year", action="store_true", help="also run all days of the year")
    parser.add_argument("--airflow", action="store_true", help="also backfill by Airflow")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        shutil.copytree(ROOT / "config", project / "config")
        split(project / "landing", FIRST_DAY, YEAR_END)
        again = {days: recompute(project, days) for days in PAST}
        figures = [*ours(project, asked.days, asked.warm)]
        cold = cold_day(
            project, FIRST_DAY + timedelta(days=asked.days + asked.warm + 1), asked.cold, again
        )
        figures += [cold, *small(project, FIRST_DAY + timedelta(days=asked.days + 100))]
        figures += [whole_year(project)] if asked.year else []
    figures += by_airflow() if asked.airflow else []
    show(figures, again, cold.run.seconds)


def ours(project: Path, days: int, warm: int) -> Iterator[Figure]:
    """Yield what a long run costs, then days after it, each with all tables."""
    after = FIRST_DAY + timedelta(days=days)
    whole = sluice(project, "run", "retail", *days_of(FIRST_DAY, days))
    yield Figure(f"a day within a run of {days}", replace(whole, seconds=whole.seconds / days))
    yield Figure(
        "the same run again, nothing new",
        sluice(project, "run", "retail", *days_of(FIRST_DAY, days)),
    )
    yield Figure("a day within a run, all tables each day", each_day(project, after, warm), 0.5)


def cold_day(project: Path, first: date, count: int, again: dict[int, Run]) -> Figure:
    """Return what a day costs that should take five seconds, and less than the year again."""
    each = [first + timedelta(days=number) for number in range(count)]
    runs = [sluice(project, "run", "retail", *days_of(day, 1)) for day in each]
    goal = round(min(5, again[YEAR].seconds), 1)
    return Figure("a new day, a process of its own", median(runs), goal, MOST)


def small(project: Path, day: date) -> Iterator[Figure]:
    """Yield what deliveries and tables of a few rows cost, and commands that only read."""
    source, view = "retail.coupon_redemptions", "retail.campaign_events"
    tiny = each_day(project, day, 20, "--source", source)
    yield Figure("delivering a tiny interval, within a process", tiny, 0.1)
    last = day + timedelta(days=21)
    ingest = sluice(project, "ingest", source, *days_of(last, 1))
    yield Figure("`sluice ingest` of a few rows, cold", ingest, 2.5)
    yield Figure("`sluice advance` of a few rows, cold", sluice(project, "advance", view), 2.5)
    yield Figure("`sluice validate`", sluice(project, "validate"), 1.5)
    yield Figure("`sluice status`", sluice(project, "status"), 0.6)


def whole_year(project: Path) -> Figure:
    """Run all days into a new lake, views every sixteen."""
    shutil.rmtree(project / "lake")
    return Figure(
        f"the year, {YEAR} intervals",
        sluice(project, "run", "retail", *days_of(FIRST_DAY, YEAR)),
        240,
    )


def by_airflow() -> Iterator[Figure]:
    """Yield what the demo's first day costs through Airflow, and then its week."""
    with tempfile.TemporaryDirectory() as folder:
        stack = airflow.prepared(Path(folder), "connect", "auto", 7)
        with airflow.unpaused(stack) as client:
            for days, goal in ((1, 7.5), (7, 39)):
                done = airflow.measure(stack, client, days)
                yield Figure(f"a backfill of {days} by Airflow", Run(done.wall), goal)


def each_day(project: Path, first: date, days: int, *more: str) -> Run:
    """Return the mean day of one process, without its first."""
    module = "tests.benchmarks.retail_days"
    found = measured(project, "-m", module, str(first), str(days), *more)
    return replace(found, seconds=float(found.said))


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
        [sys.executable, *command], cwd=project, env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        with Gauge(partial(tree, psutil.Process(process.pid)), pause=0.2) as gauge:
            said, _ = process.communicate()
        seconds = time.monotonic() - began
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return Run(seconds, sum(gauge.peaks.values()), gauge.peaks["Spark"], said)


def median(runs: Sequence[Run]) -> Run:
    return Run(
        statistics.median(run.seconds for run in runs),
        max(run.bytes for run in runs),
        max(run.java for run in runs),
    )


def show(figures: Sequence[Figure], again: dict[int, Run], cold: float) -> None:
    table = Table("work", "seconds", "goal", "MB", "goal", "JVM")
    for figure in figures:
        run, wanted = figure.run, "" if figure.goal is None else f"{figure.goal:g}"
        held = f"{run.bytes / 2**20:.0f}" if run.bytes else ""
        java = "" if not run.bytes else "yes" if run.java else "no"
        table.add_row(figure.work, f"{run.seconds:.2f}", wanted, held, f"{figure.most or ''}", java)
    for days, run in again.items():
        table.add_row(f"DuckDB computes {days} days again", f"{run.seconds:.2f}")
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
        f"({day / YEAR:.1f} years of this data); goal: day {CROSSED}."
    )


if __name__ == "__main__":
    main()
