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
from datetime import timedelta
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from airflow_client import DONE, AirflowClient, Reprocess
from landing import DEMO_START, split
from sluice.language.interval import parse_time
from stack import ROOT, Ports, Stack

RETAIL = "retail"
COLUMNS = ("backfill", "wall s", "Airflow and tasks CPU s", "Spark CPU s", "tasks")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engine", choices=("connect", "submit"), default="connect")
    parser.add_argument("--tasks", choices=("auto", "table", "pipeline"), default="auto")
    parser.add_argument("--days", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stack = prepared(Path(folder), asked.engine, asked.tasks, asked.days)
        with stack.running():
            client = stack.airflow.client()
            client.await_dag(RETAIL)
            client.unpause(RETAIL)
            rows = [measure(stack, client, asked.days, how) for how in ("none", "completed")]
    show(f"{asked.days} days, {asked.engine}, tasks: {asked.tasks}", rows)


def prepared(folder: Path, engine: str, tasks: str, days: int) -> Stack:
    """A copy of the project with that shape of tasks, and its deliveries."""
    for name in ("config", "jobs", "dags"):
        shutil.copytree(ROOT / name, folder / name)
    with (folder / "config/sluice.yaml").open("a", encoding="utf-8") as settings:
        settings.write(f"\nairflow: {{tasks: {tasks}}}\n")
    split(folder / "landing", DEMO_START, DEMO_START + timedelta(days=days))
    return Stack(folder / "airflow", engine, Ports.free(), root=folder)


def measure(stack: Stack, client: AirflowClient, days: int, how: Reprocess) -> tuple[str, ...]:
    """One backfill of all days."""
    first, last = (parse_time(DEMO_START + timedelta(days=n)) for n in (0, days - 1))
    before, began = cpu_seconds(stack), time.monotonic()
    number = client.backfill(RETAIL, first, last, runs=days, reprocess=how)
    while not has_ended(client, days):
        time.sleep(1)
    wall = time.monotonic() - began
    client.finish(number)
    spent = [after - then for after, then in zip(cpu_seconds(stack), before, strict=True)]
    states = Counter(task.state for task in client.tasks(RETAIL))
    shown = ", ".join(f"{count} {state}" for state, count in states.items())
    title = "first" if how == "none" else "again, with nothing new"
    return (title, f"{wall:.0f}", *(f"{seconds:.0f}" for seconds in spent), shown)


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


def show(title: str, rows: list[tuple[str, ...]]) -> None:
    table = Table(title=title)
    for column in COLUMNS:
        table.add_column(column)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
