"""A project of its own folder, and the real command line in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from pyspark import SparkContext

from sluice.cli.main import main

ROOT = Path(__file__).parents[2]
SETTINGS = "lake: lake\nspark: {conf: {spark.driver.memory: 1g, spark.sql.shuffle.partitions: 1}}\n"
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

    def sluice(self, *arguments: str) -> Ended:
        """The command line, as a user has it."""
        return self._python("-m", "sluice.cli.main", *arguments)

    def job(self, name: str, *arguments: str) -> Ended:
        """A job, as Airflow starts it."""
        return self._python(str(ROOT / "jobs" / f"{name}.py"), *arguments)

    def _python(self, *arguments: str) -> Ended:
        command = [sys.executable, *arguments, "--config", str(self.folder / "config")]
        environment = {**os.environ, "SPARK_REMOTE": self.remote}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return Ended(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Here(Project):
    """A project whose commands run without a JVM: in this process, or beside one that has it."""

    remote: str = ""

    def sluice(self, *arguments: str) -> Ended:
        given = [*arguments, "--config", str(self.folder / "config")]
        if not SparkContext._active_spark_context:
            return _invoked(given)
        with _processes() as processes:
            return processes.submit(_invoked_with, dict(os.environ), given).result()

    def killed(self, place: str, *arguments: str) -> int:
        """The exit code of the command in a process of its own that is killed at a place."""
        command = [sys.executable, "-m", "sluice.cli.main", *arguments]
        command += ["--config", str(self.folder / "config")]
        environment = {**os.environ, "SLUICE_FAILPOINT": place}
        return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


def _processes() -> ProcessPoolExecutor:
    """New processes without a JVM: forks of one that has imported what this one has of Sluice."""
    context = get_context("forkserver")
    context.set_forkserver_preload([name for name in sys.modules if name.startswith("sluice.")])
    return ProcessPoolExecutor(1, context)


def _invoked_with(environment: dict[str, str], arguments: list[str]) -> Ended:
    os.environ.clear()
    os.environ.update(environment)
    return _invoked(arguments)


def _invoked(arguments: list[str]) -> Ended:
    done = CliRunner().invoke(main, arguments)
    return Ended(done.exit_code, done.stdout, done.stderr)
