"""A small shop in a real Airflow: its deliveries, its runs followed to their end, its tables.

`sales` has a key and a sequence, so that the order of deliveries would show in it if it mattered.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from airflow_client import DONE, AirflowClient, Reprocess, RunOfTask
from sluice.delta.places.failpoint import VARIABLE
from sluice.language.interval import parse_time
from sluice.read.lake import Lake
from stack import Stack

CORNER = """
pipeline: corner
schedule: "@daily"
start_date: 2024-03-01
end_date: 2024-03-05
catchup: true
airflow: {retries: 1, retry_delay: 1 second, deadline: 1 second, webhook: "${SLUICE_WEBHOOK:-}"}
sources:
  sales:
    path: "${SLUICE_LANDING:-landing}/sales/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id INT, item STRING, paid INT, said INT
    key: [id]
    sequence: [said]
    expect:
      - {type: expect_column_values_to_be_between, column: paid, max_value: 1000, on_failure: stop}
views:
  items:
    kind: cogroup
    key: [item]
    streams:
      sales:
        from: sales
        aggregates: {paid: sum(paid), sold: count(*), ids: collect_list(id ORDER BY id)}
  best: {kind: topk, from: items, order_by: [paid desc], limit: 2}
"""
NEWS = """
pipeline: news
schedule: assets
views:
  worst: {kind: topk, from: corner.items, order_by: [paid], limit: 1}
"""
DAYS = ("2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04")
# (id, item, paid, said): sale 2 comes again on the third day, sale 1 on the last, but out of date.
SALES: Mapping[str, list[tuple[int, str, int, int]]] = {
    DAYS[0]: [(1, "tea", 3, 5), (2, "ham", 9, 1)],
    DAYS[1]: [(3, "tea", 4, 1), (4, "jam", 2, 1)],
    DAYS[2]: [(2, "ham", 1, 2), (5, "jam", 5, 1)],
    DAYS[3]: [(1, "tea", 90, 4), (6, "ham", 2, 1)],
}
TABLES = ("sales", "items", "best")
CALM = {  # few tasks follow each other, and no file of a DAG changes: both are seldom looked for
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "1",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "120",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "120",
}
POLLED = 1.0  # seconds between two questions: each takes the server as long as a task's


def sell(landing: Path, day: str, sales: Iterable[tuple[int, str, int, int]]) -> None:
    """A day's sales, in place of what was there."""
    names = ("id", "item", "paid", "said")
    lines = (json.dumps(dict(zip(names, sale, strict=True))) for sale in sales)
    file = landing / "sales" / day / "a.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def await_run(client: AirflowClient, dag: str, run: str, patience: float = 400) -> str:
    """The state in which a run ends."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        states = [found.state for found in client.runs(dag) if found.id == run]
        if states and states[0] in DONE:
            return states[0]
        time.sleep(POLLED)
    raise TimeoutError(f"{run} of {dag} did not end within {patience} s")


def await_all(client: AirflowClient, dag: str, least: int, patience: float = 400) -> None:
    """Returns when a DAG has that many runs and all have ended."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        states = [run.state for run in client.runs(dag)]
        if len(states) >= least and all(state in DONE for state in states):
            return
        time.sleep(POLLED)
    raise TimeoutError(f"{dag} has runs that did not end within {patience} s: {states}")


def backfill(
    client: AirflowClient,
    dag: str,
    days: Sequence[str],
    reprocess: Reprocess = "completed",
    *,
    backwards: bool = False,
) -> int:
    """Asks for the days from the first to the last, all at once; the backfill's number."""
    first, last = parse_time(days[0]), parse_time(days[-1])
    return client.backfill(
        dag, first, last, runs=len(DAYS), reprocess=reprocess, backwards=backwards
    )


def states(client: AirflowClient, dag: str, run: str) -> dict[str, str]:
    """The tasks of a run."""
    return {task.task: task.state for task in client.tasks(dag, run)}


def log_of(client: AirflowClient, dag: str, run: str, name: str) -> str:
    """What the last attempt of a task logged."""
    return "\n".join(client.log(dag, task_of(client, dag, run, name)))


def task_of(client: AirflowClient, dag: str, run: str, name: str) -> RunOfTask:
    (task,) = (task for task in client.tasks(dag, run) if task.task == name)
    return task


def contents(lake: Lake, tables: Iterable[str] = TABLES) -> dict[str, str]:
    """A hash of each table's rows."""
    return {name: _hash(list(lake.table(f"corner.{name}").read())) for name in tables}


def _hash(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def clean_run(stack: Stack, folder: Path) -> Lake:
    """The lake after one run of all days in order, without Airflow."""
    bounds = ["--start", DAYS[0], "--end", "2024-03-05"]
    sluice(stack, "run", "corner", *bounds, "--json", SLUICE_LAKE=str(folder))
    return Lake(stack.project.model_copy(update={"lake": str(folder)}))


def sluice(stack: Stack, *arguments: str, **variables: str) -> str:
    """What a command of Sluice prints, which has the stack's Spark but not its Airflow.

    It is a process of its own: this one may hold a Spark that is no client of the server.
    """
    environ = {**os.environ, **stack.environ, VARIABLE: "", **variables}
    command = [sys.executable, "-m", "sluice.cli.main", *arguments]
    done = subprocess.run(
        command, env=environ, cwd=stack.root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def webhook(heard: list[dict[str, Any]]) -> Iterator[str]:
    """The address of a chat service that notes what it receives."""

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append(json.loads(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Is silent."""

    server = HTTPServer(("127.0.0.1", 0), Chat)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
