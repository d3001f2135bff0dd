"""`make demo`: a week of shopping through a real Airflow, then a correction of one of its days.

It begins with an empty lake, starts Airflow and (unless `--engine submit`) a Spark Connect server
on loopback, backfills seven days through Airflow's scheduler and shows the results. One file has
bad rows: they are in quarantine until the file is fixed and its day replayed. Then a past day is
delivered again, only that day is backfilled again, and the changes are shown. At the end, every
view is compared with a recompute. It always stops what it started. With `--serve`, it then serves
the tables until Ctrl-C.
"""

import argparse
import os
import shutil
import signal
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

import demo_kafka
import demo_serve
import landing
import story
from airflow_client import AirflowClient, Reprocess, RunOfTask
from board import Board
from gauge import Gauge
from room import make_room
from sluice.airflow.blueprint import task_graph
from sluice.errors import SluiceError
from sluice.read.lake import Lake
from stack import HOME, Ports, Stack

PIPELINE = "retail"
SPOILED = "coupon_redemptions"
console = Console()


class DemoFailed(SluiceError):
    """Failure of a run."""


def main() -> int:
    """Run the demo; return 0 if every view equals its recompute."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engine", choices=("connect", "submit"), default="connect")
    parser.add_argument(
        "--kafka", action="store_true", help="the week through a topic instead, without Airflow"
    )
    parser.add_argument(
        "--serve", action="store_true", help="then serve the tables over HTTP, until Ctrl-C"
    )
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupted)
    code = story.told(demo_kafka.demo if given.kafka else partial(_demo, given.engine))
    if code or given.kafka or not given.serve:
        return code
    return story.told(partial(demo_serve.keep_serving, os.environ["SLUICE_CONFIG"]))


def _demo(engine: str) -> int:
    if Stack.found():
        raise DemoFailed("Airflow runs already, from `make up`", hint="run `make down` first")
    stack = Stack(HOME, engine, Ports.usual())
    os.environ.update(stack.environ)
    make_room(stack.project)
    shutil.rmtree(stack.home, ignore_errors=True)
    clock, gauge = Clock(), Gauge(stack.daemons.processes)
    try:
        with gauge:
            return _tell(stack, clock, gauge)
    finally:
        with story.doing("stopping what was started"):
            stack.stop()


def _tell(stack: Stack, clock: "Clock", gauge: Gauge) -> int:
    folder = stack.root / os.environ.get("SLUICE_LANDING", "landing")
    with story.doing(f"delivering a week to {folder.name}/, starting Airflow"):
        landing.split(folder)
        landing.spoil(folder)
        stack.start()
        client = stack.airflow.client()
        client.await_dag(PIPELINE)
    clock.lap("start")
    client.unpause(PIPELINE)
    backfill = _Backfill(stack, client)
    week = [str(day) for day in landing.days(landing.DEMO_START, landing.DEMO_END)]
    story.chapter("A backfill of seven days, by Airflow's scheduler")
    first = backfill(week, "none")
    clock.lap("backfill")
    lake = Lake(stack.project)
    story.results(lake, landing.DEMO_HOUSEHOLD)
    story.quality(stack.project)
    story.times(first, backfill.order)
    clock.lap("results")
    _mend(stack, lake, folder)
    clock.lap("gate")
    story.chapter(f"A past day is corrected: {landing.CORRECTED_DAY}")
    before = story.versions(lake)
    story.correction(landing.correct(folder))
    again = backfill([str(landing.CORRECTED_DAY)], "completed")
    clock.lap("correction")
    story.changed(lake, before)
    story.times(again, backfill.order)
    story.chapter("Every table that is computed, compared with a recompute")
    with story.doing("recomputing"):
        equal = story.verified(stack.project)
    clock.lap("verify")
    story.summary(clock.laps, str(gauge), stack.home)
    return 0 if equal else 1


def _mend(stack: Stack, lake: Lake, folder: Path) -> None:
    """Show the quarantined rows, and replay them once the file is fixed."""
    day = landing.SPOILED_DAY
    story.chapter(f"The gate kept {len(landing.SPOILED)} rows of {day} out")
    story.quarantined(lake, SPOILED)
    landing.split(folder, day, day + timedelta(days=1))
    with story.doing(f"the file is fixed; replaying {SPOILED}, and the views over it"):
        done = story.replayed(stack.project, SPOILED)
    story.committed(done)
    story.quality(stack.project)


class _Backfill:
    """Backfill days through Airflow, and wait for their end."""

    def __init__(self, stack: Stack, client: AirflowClient) -> None:
        project = stack.project
        graph = task_graph(project, project.pipelines[PIPELINE])
        self.order = [task.id for task in graph.tasks]
        self.stack = stack
        self.client = client
        self.board = Board(client, PIPELINE, self.order)

    def __call__(self, days: list[str], reprocess: Reprocess) -> list[RunOfTask]:
        first, last = (
            datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (days[0], days[-1])
        )
        number = self.client.backfill(PIPELINE, first, last, runs=len(days), reprocess=reprocess)
        tasks = self.board.follow(days, self._alive)
        self.client.finish(number)
        failed = [task for task in tasks if task.state == "failed"]
        if failed:
            tail = "\n".join(self.client.log(PIPELINE, failed[0])[-25:])
            where = f"{failed[0].task} of {failed[0].day}"
            raise DemoFailed(f"{where} failed:\n{tail}")
        return tasks

    def _alive(self) -> str:
        if not self.stack.is_whole:
            logs = self.stack.daemons.folder
            raise DemoFailed("a service ended", hint=f"the logs are in {logs}")
        return ""


class Clock:
    """Stopwatch: seconds by chapter."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._began = time.monotonic()

    def lap(self, name: str) -> None:
        """Add the seconds since the last chapter."""
        now = time.monotonic()
        self.laps[name], self._began = now - self._began, now


def _interrupted(signal_: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
