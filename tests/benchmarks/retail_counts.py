"""Counts of a day of shopping, for each table: queries, tables opened, commits.

PYTHONPATH=tools python -m tests.benchmarks.retail_counts [--days 3]

A process of its own brings up all days but the last. This one brings up the last day, one table
after the other, and counts. The counts do not depend on the machine.
"""

import argparse
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from functools import wraps
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from rich.console import Console
from rich.table import Table
from tests.benchmarks.retail import days_of, sluice

from landing import split
from shopping import FIRST_DAY
from sluice.declare.project import load
from sluice.engine.batch_report import BatchReport
from sluice.interpreter.local_session import Service
from sluice.language.interval import Interval, parse_time
from sluice.language.names import declared_id
from sluice.operate import workers
from sluice.operate.run import run
from sluice.spark.session import Spark, with_spark
from stack import ROOT

WORDS = ("queries", "opens", "commits")


class Counts:
    """What was done since the last step, and by each table."""

    def __init__(self, lake: Path) -> None:
        self.lake, self.now = lake, Counter[str]()
        self.by_table: dict[str, Counter[str]] = {}
        self.versions = self._versions()

    def watch(self, of: type, name: str, word: str) -> None:
        """Count the calls of a method."""
        method: Callable[..., Any] = getattr(of, name)

        @wraps(method)
        def counting(*arguments: Any, **named: Any) -> Any:
            self.now[word] += 1
            return method(*arguments, **named)

        setattr(of, name, counting)

    def step(self, report: BatchReport) -> None:
        """Add what was done to the table of a step."""
        versions = self._versions()
        self.now["commits"] += versions - self.versions
        self.versions = versions
        self.by_table.setdefault(declared_id(report.table), Counter()).update(self.now)
        self.now.clear()

    def _versions(self) -> int:
        return sum(1 for _ in self.lake.rglob("_delta_log/*.json"))


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--days", type=int, default=3, help="days, of which the last is counted")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        split(place / "landing", FIRST_DAY, FIRST_DAY + timedelta(days=asked.days))
        shutil.copytree(ROOT / "config", place / "config")
        os.environ |= {"SLUICE_LAKE": str(place / "lake"), "SLUICE_LANDING": str(place / "landing")}
        sluice(place, "run", "retail", *days_of(FIRST_DAY, asked.days - 1))
        os.chdir(place)
        show(counted(place, FIRST_DAY + timedelta(days=asked.days - 1)))


def counted(place: Path, day: date) -> dict[str, Counter[str]]:
    """Return the counts of each table on a day."""
    project, start = load(place / "config"), parse_time(str(day), "UTC")
    counts = Counts(place / "lake")
    counts.watch(Service, "table", "queries")
    counts.watch(DeltaTable, "__init__", "opens")
    workers.MOST = 1

    def work(spark: Spark) -> None:
        last = Interval(start, start + timedelta(days=1))
        run(spark, project, project.pipelines["retail"], [last], on_step=counts.step)

    with_spark(project.spark, work)
    return counts.by_table


def show(found: dict[str, Counter[str]]) -> None:
    table = Table("table", *WORDS)
    for name, counts in found.items():
        table.add_row(name, *(str(counts[word]) for word in WORDS))
    table.add_row("all", *(str(sum(c[word] for c in found.values())) for word in WORDS))
    Console().print(table)


if __name__ == "__main__":
    main()
