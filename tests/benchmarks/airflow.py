"""What a backfill through Airflow costs: wall and CPU seconds, by engine and by the shape of a run.

PYTHONPATH=tools python -m tests.benchmarks.airflow [--engine connect|submit] [--days 7]

The demo's days are delivered to a fresh folder and backfilled by a local Airflow, then backfilled
again with nothing new. CPU seconds are those of Airflow with its tasks, and of Spark's JVMs that
live as long as the services; the JVMs of `submit` count as its tasks'.
"""

import argparse
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from airflow_client import DONE, AirflowClient, Reprocess
from landing import DEMO_START, split
from sluice.language.interval import parse_time
from stack import ROOT, Ports, Stack

RETAIL = "retail"
COLUMNS = ("backfill", "wall s", "Airflow and tasks CPU s", "Spark CPU s", "tasks")


class Backfill(NamedTuple):
    """Seconds of the wall, of Python's CPU and of Spark's; and how many tasks ended in what."""

    wall: float
    python: float
    java: float
    tasks: str


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engine", choices=("connect", "submit"), default="connect")
    parser.add_argument("--tasks", choices=("auto", "table", "pipeline"), default="auto")
    parser.add_argument("--days", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stack = prepared(Path(folder), asked.engine, asked.tasks, asked.days)
        with unpaused(stack) as client:
            first = measure(stack, client, asked.days)
            again = measure(stack, client, asked.days, "completed")
    rows = {"first": first, "again, with nothing new": again}
    show(f"{asked.days} days, {asked.engine}, tasks: {asked.tasks}", rows)


@contextmanager
def unpaused(stack: Stack) -> Iterator[AirflowClient]:
    """Start everything, and yield a client of an Airflow that runs the demo's DAG."""
    with stack.running():
        client = stack.airflow.client()
        client.await_dag(RETAIL)
        client.unpause(RETAIL)
        yield client


def prepared(folder: Path, engine: str, tasks: str, days: int) -> Stack:
    """A copy of the project with that shape of tasks, and its deliveries."""
    for name in ("config", "jobs", "dags"):
        shutil.copytree(ROOT / name, folder / name)
    with (folder / "config/sluice.yaml").open("a", encoding="utf-8") as settings:
        settings.write(f"\nairflow: {{tasks: {tasks}}}\n")
    split(folder / "landing", DEMO_START, DEMO_START + timedelta(days=days))
    return Stack(folder / "airflow", engine, Ports.free(), root=folder)


def measure(stack: Stack, client: AirflowClient, days: int, how: Reprocess = "none") -> Backfill:
    """One backfill of the first days."""
    first, last = (parse_time(DEMO_START + timedelta(days=n)) for n in (0, days - 1))
    before, began = cpu_seconds(stack), time.monotonic()
    number = client.backfill(RETAIL, first, last, runs=days, reprocess=how)
    while not has_ended(client, days):
        time.sleep(1)
    wall = time.monotonic() - began
    client.finish(number)
    python, java = (after - then for after, then in zip(cpu_seconds(stack), before, strict=True))
    states = Counter(task.state for task in client.tasks(RETAIL))
    shown = ", ".join(f"{count} {state}" for state, count in states.items())
    return Backfill(wall, python, java, shown)


def has_ended(client: AirflowClient, days: int) -> bool:
    runs = client.runs(RETAIL)
    return len(runs) == days and all(run.state in DONE for run in runs)


def cpu_seconds(stack: Stack) -> tuple[float, float]:
    """Of everything but the services' own JVMs, which waited for its children; of those JVMs."""
    python, java = 0.0, 0.0
    for process in stack.daemons.processes():
        try:
            spent, is_java = process.cpu_times(), process.name() == "java"
        except psutil.Error:
            continue
        if is_java:
            java += spent.user + spent.system
        else:
            python += sum(spent[:4])
    return python, java


def show(title: str, rows: dict[str, Backfill]) -> None:
    table = Table(title=title)
    for column in COLUMNS:
        table.add_column(column)
    for name, done in rows.items():
        table.add_row(name, *(f"{seconds:.0f}" for seconds in done[:3]), done.tasks)
    Console().print(table)


if __name__ == "__main__":
    main()
