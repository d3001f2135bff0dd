"""What ten row rules cost a real ingestion: time and Spark jobs, with and without them.

python -m tests.benchmarks.quality [--rows 100000] [--days 12] [--keyed]

Two sources deliver the same files, day by day and in turn, into a fresh lake; the first days warm
up. Both pass the gate, which counts rows in any case; one of them has ten expectations.
"""

import argparse
import datetime as dt
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from sluice.declare.project import Project, load
from sluice.engine.advance import Run
from sluice.language.interval import Interval
from sluice.operate import run as runs
from sluice.spark.session import Spark

START = dt.datetime(2017, 3, 1, tzinfo=dt.UTC)
WARMING_UP = 4  # days
RULES = """
      - {type: expect_column_values_to_not_be_null, column: household}
      - {type: expect_column_values_to_not_be_null, column: department, mostly: 0.5}
      - {type: expect_column_values_to_be_in_set, column: department, value_set: [D1, D2, D3]}
      - {type: expect_column_values_to_not_be_in_set, column: household, value_set: [0]}
      - {type: expect_column_values_to_be_between, column: quantity, min_value: 0, max_value: 7}
      - {type: expect_column_values_to_be_between, column: price, min_value: 0}
      - {type: expect_column_values_to_be_between, column: at, min_value: "2017-01-01"}
      - {type: expect_column_values_to_match_regex, column: department, regex: "^[A-Z]"}
      - {type: expect_column_value_lengths_to_be_between, column: department, max_value: 5}
      - {type: expect_column_pair_values_to_be_equal, column_A: line, column_B: line}
"""
SOURCE = """
  {name}:
    path: "landing/{{interval_start:%Y-%m-%d}}/"
    schema: >-
      line BIGINT, household INT, quantity INT, price DECIMAL(12,2), department STRING, at TIMESTAMP
    {key}
    expect: {rules}
"""


@dataclass(frozen=True)
class Measured:
    """One delivery; CPU time, of all threads, is less disturbed by what else the machine does."""

    seconds: float
    cpu_seconds: float
    jobs: int


def declare(folder: Path, *, keyed: bool) -> Project:
    """A project with both sources."""
    key = "key: [line]" if keyed else ""
    sources = [
        SOURCE.format(name=name, key=key, rules=rules)
        for name, rules in (("plain", "[]"), ("checked", RULES))
    ]
    path = folder / "config" / "pipelines" / "shop.yaml"
    path.parent.mkdir(parents=True)
    head = 'pipeline: shop\nschedule: "@daily"\nstart_date: 2017-03-01\nsources:\n'
    path.write_text(head + "".join(sources), encoding="utf-8")
    return load(folder / "config")


def land(folder: Path, day: dt.datetime, rows: int) -> None:
    """A day's file."""
    rng = np.random.default_rng(day.day)
    departments = np.array([f"D{n}" for n in range(7)] + [None], dtype=object)
    prices = pa.array(rng.integers(0, 900, rows).astype("int32")).cast(pa.decimal128(12, 2))
    table = pa.table(
        {
            "line": np.arange(rows) + day.day * rows,
            "household": rng.integers(0, 2500, rows).astype("int32"),
            "quantity": rng.integers(0, 9, rows).astype("int32"),
            "price": prices,
            "department": departments[rng.integers(0, 8, rows)],
            "at": pa.array(rng.integers(0, 86_400_000_000, rows) + int(day.timestamp() * 1e6)).cast(
                pa.timestamp("us", tz="UTC")
            ),
        }
    )
    path = folder / "landing" / f"{day:%Y-%m-%d}" / "part.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(table, path)


def jobs_so_far(spark: Spark) -> int:
    """How many jobs the application has run."""
    context: Any = spark.session.sparkContext
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


def cpu_so_far(spark: Spark) -> float:
    """CPU seconds of this process and of its Java."""
    pid = spark.session.sparkContext._gateway.proc.pid
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(after_name[11]) + int(after_name[12])
    return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()


def deliver(spark: Spark, project: Project, name: str, day: dt.datetime) -> Measured:
    """Ingest a day of a source."""
    table = project.graph.table(name)
    jobs, cpu, began = jobs_so_far(spark), cpu_so_far(spark), time.perf_counter()
    interval = Interval(day, day + dt.timedelta(days=1))
    list(runs.deliver(spark, project, table, Run("benchmark"), [interval]))
    seconds = time.perf_counter() - began
    return Measured(seconds, cpu_so_far(spark) - cpu, jobs_so_far(spark) - jobs)


def measure(folder: Path, rows: int, days: int, *, keyed: bool) -> Iterator[dict[str, Measured]]:
    """Each day's deliveries; which source comes first changes from day to day."""
    project = declare(folder, keyed=keyed)
    spark = Spark(project.spark)
    try:
        for nth in range(days + WARMING_UP):
            day = START + dt.timedelta(days=nth)
            land(folder, day, rows)
            names = ("plain", "checked") if nth % 2 else ("checked", "plain")
            found = {name: deliver(spark, project, name, day) for name in names}
            if nth >= WARMING_UP:
                yield found
    finally:
        spark.stop()


def summary(found: list[dict[str, Measured]]) -> dict[str, tuple[float, float]]:
    """Medians, without and with rules, and how much more than without."""
    days = {name: [day[name] for day in found] for name in ("plain", "checked")}
    told: dict[str, tuple[float, float]] = {}
    for of in ("seconds", "cpu_seconds", "jobs"):
        plain, checked = ([getattr(day, of) for day in days[name]] for name in days)
        told[of] = (round(statistics.median(plain), 2), round(statistics.median(checked), 2))
        if of != "jobs":
            ratios = [c / p for p, c in zip(plain, checked, strict=True)]
            told[f"{of}, % more"] = (0, round(100 * (statistics.median(ratios) - 1), 1))
    return told


def main(argv: list[str]) -> None:
    """Prints a table, and the same as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--days", type=int, default=12)
    parser.add_argument("--keyed", action="store_true")
    given, busy = parser.parse_args(argv), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        told = summary(list(measure(Path(folder), given.rows, given.days, keyed=given.keyed)))
    title = f"{given.rows:,} rows, median of {given.days}; load average before: {busy:.1f}"
    table = Table("", "without", "with 10 rules", title=title)
    for what, figures in told.items():
        table.add_row(what, *map(str, figures))
    Console().print(table)
    print(json.dumps({**vars(given), **told, "load_average_before": round(busy, 1)}))


if __name__ == "__main__":
    main(sys.argv[1:])
