"""A project of its own folder, and the real command line in a process of its own.

Such a process is the fork of one that has imported what this one has of Sluice: a command costs
its work, not two seconds of imports. Jobs, and commands that are killed, start from nothing.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from pyspark import SparkContext
from tests.support import lake
from tests.support.forked import Pipe, forked

from sluice.cli.main import main

ROOT = Path(__file__).parents[2]
CONF = json.dumps({"spark.driver.memory": "1g", **lake.CONF})
SETTINGS = f"lake: lake\nspark: {{conf: {CONF}}}\n"
TRIPS = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
sources:
  flights:
    path: "landing/flights/{interval_start:%Y-%m-%d}/"
    format: json
    schema: carrier STRING, delay INT
  weather:
    path: "landing/weather/{interval_start:%Y-%m-%d}/"
    format: json
    schema: station INT, wind INT
  fuel:
    path: "landing/fuel/{interval_start:%Y-%m-%d}/"
    format: json
    missing: fail
    schema: tank INT, litres INT
views:
  delays: {kind: cogroup, key: [carrier], streams: {f: {from: flights, aggregates: {n: count(*)}}}}
  gusts: {kind: cogroup, key: [station], streams: {w: {from: weather, aggregates: {n: count(*)}}}}
  spent: {kind: cogroup, key: [tank], streams: {f: {from: fuel, aggregates: {n: count(*)}}}}
  shares:
    kind: cogroup
    key: [carrier]
    streams: {f: {from: flights, aggregates: {least: min(60 / delay)}}}
  best: {kind: topk, from: shares, order_by: [least], limit: 3}
"""


@dataclass(frozen=True)
class Ended:
    """What a command said, and with what exit code it ended."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """Its output as JSON, a record a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def lines(self) -> list[str]:
        """What it said on standard error, without Java's own words."""
        return [line for line in self.err.splitlines() if not line.startswith("WARNING:")]


Work = Callable[[list[str]], Ended]


@dataclass(frozen=True)
class Project:
    """One project in a folder; its processes share the Spark at `remote`."""

    folder: Path
    remote: str

    def declare(self, text: str) -> None:
        """The pipeline's whole file."""
        pipelines = self.folder / "config" / "pipelines"
        pipelines.mkdir(parents=True, exist_ok=True)
        (pipelines.parent / "sluice.yaml").write_text(SETTINGS)
        (pipelines / "trips.yaml").write_text(text)

    def land(self, source: str, day: int, rows: Iterable[Mapping[str, Any]]) -> Path:
        """One file of a day of January 2024, in place of the one before."""
        folder = self.folder / "landing" / source / f"2024-01-{day:02}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return folder

    def sluice(self, *arguments: str, **variables: str) -> Ended:
        """The command line, as a user has it, with these variables beside this process's own."""
        return self._forked(invoked, *arguments, **variables)

    def complete(self, *arguments: str, **variables: str) -> Ended:
        """The command line, of a command that succeeds."""
        ended = self.sluice(*arguments, **variables)
        assert ended.code == 0, ended.err
        return ended

    def job(self, name: str, *arguments: str) -> Ended:
        """A job, as Airflow starts it."""
        return self._python(str(ROOT / "jobs" / f"{name}.py"), *arguments)

    def _python(self, *arguments: str) -> Ended:
        command = [sys.executable, *arguments, "--config", str(self.folder / "config")]
        environment = self._environment()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return Ended(done.returncode, done.stdout, done.stderr)

    def _forked(self, work: Work, *arguments: str, **variables: str) -> Ended:
        """What `work` makes of the arguments in a process of its own, which has no JVM."""
        given = [*arguments, "--config", str(self.folder / "config")]
        answer, told = Pipe(duplex=False)
        process = forked(_within, told, {**self._environment(), **variables}, work, given)
        told.close()
        ended: Ended | None = None
        with answer, suppress(EOFError):  # it was killed
            ended = answer.recv()
        process.join()
        return ended or Ended(process.exitcode or 0, "", "")

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **({"SPARK_REMOTE": self.remote} if self.remote else {})}


@dataclass(frozen=True)
class Here(Project):
    """A project whose commands run without a JVM: in this process, or beside one that has it.

    A command that needs Spark starts its own, unless there is one at `remote`.
    """

    remote: str = ""

    def sluice(self, *arguments: str, **variables: str) -> Ended:
        if SparkContext._active_spark_context or variables:
            return self._forked(invoked, *arguments, **variables)
        return invoked([*arguments, "--config", str(self.folder / "config")])

    def killed(self, place: str, *arguments: str) -> int:
        """The exit code of the command in a process of its own that is killed at a place."""
        return self.sluice(*arguments, SLUICE_FAILPOINT=place).code


def _within(told: Connection, environment: dict[str, str], work: Work, given: list[str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    told.send(work(given))


def invoked(arguments: list[str]) -> Ended:
    done = CliRunner().invoke(main, arguments)
    return Ended(done.exit_code, done.stdout, done.stderr)
