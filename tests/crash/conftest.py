"""Processes that wait to be killed, and one undisturbed run to compare with.

Most use the Spark of the tests: between two commits it makes no difference whose Spark it is. Those
that are killed at any time, or that run out of memory, have one of their own.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from pyspark.sql import SparkSession
from tests.crash.shop import CORRECTED, FIRST, Deployed, Shop, day
from tests.crash.worker import COLD, MARK, serve
from tests.support.forked import Pipe, forked
from tests.support.java import LEAN

from sluice.delta.places.failpoint import VARIABLE
from sluice.language.interval import Interval
from sluice.spark.session import RUNTIME_CONF, SMALL

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Worker:
    """One such process, the leader of a group that its JVM, if it has one, belongs to."""

    process: "subprocess.Popen[str] | Fork"
    log: Path

    @classmethod
    def start(cls, folder: Path) -> "Worker":
        """One with a small Spark of its own."""
        command = [sys.executable, str(ROOT / "tests" / "crash" / "worker.py"), str(folder)]
        environment = {
            **environ_of(folder),
            **LEAN,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "libs"), str(ROOT)]),
        }
        with (folder / "stderr").open("w") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        return cls(process, folder / "stderr")

    @classmethod
    def fork(cls, folder: Path, remote: str | None) -> "Worker":
        """A client of the Spark at `remote`, or one that is asked for nothing that needs Spark."""
        spark = {"SPARK_REMOTE": remote} if remote else {COLD: "yes"}
        return cls(Fork({**environ_of(folder), **spark}, folder), folder / "stderr")

    @property
    def place(self) -> str:
        """Where it was ended or stopped; nothing if it was not."""
        lines = self.log.read_text().splitlines()
        told = [line for line in lines if line.startswith(f"{VARIABLE}: ")]
        return told[-1].removeprefix(f"{VARIABLE}: ") if told else ""

    def tell(
        self,
        project: Deployed,
        *intervals: Interval,
        failpoint: str = "",
        what: str = "run",
        views: Sequence[str] = (),
    ) -> None:
        told = {
            "config": str(project.config),
            "intervals": [(i.start.isoformat(), i.end.isoformat()) for i in intervals],
            "failpoint": failpoint,
            "what": what,
            "views": views,
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any] | None:
        """What it says next; nothing if it died."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(MARK):
                answer: dict[str, Any] = json.loads(line.removeprefix(MARK))
                return answer
        return None

    def wait_until_stopped(self) -> None:
        if not self.stops_within(300):
            pytest.fail("it passed the place where it was to stop")

    def stops_within(self, seconds: float) -> bool:
        """Whether it stops before it answers, or at all."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED:
                return True
            if select.select([self.process.stdout], [], [], 0.05)[0]:
                return False
        return False

    def answers_within(self, seconds: float) -> bool:
        """Whether it is done by then."""
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def resume(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """The whole group, Python and JVM."""
        with_group = self.process.pid
        with contextlib.suppress(ProcessLookupError):
            os.killpg(with_group, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


class Fork:
    """A worker that is a fork, with what is asked here of a process."""

    def __init__(self, environ: dict[str, str], folder: Path):
        mine, its = Pipe()
        self._process = forked(serve, its, str(folder), environ)
        its.close()
        self.pid = cast(int, self._process.pid)
        self.stdin, self.stdout = (os.fdopen(os.dup(mine.fileno()), mode) for mode in "wr")
        mine.close()

    def wait(self) -> None:
        self._process.join()


def environ_of(folder: Path) -> dict[str, str]:
    """The variables of a worker, in that new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return {**os.environ, "AIRFLOW_HOME": str(folder / "airflow")}


class Pool:
    """One worker ahead of the test that needs it: forks, or processes with a Spark of their own."""

    def __init__(self, folder: Path, remote: str | None = None, *, has_own_spark: bool = False):
        self.folder, self.remote, self.started = folder, remote, 0
        self.has_own_spark = has_own_spark
        self.spare: Worker | None = None
        self.every: list[Worker] = []
        self.idle: list[Worker] = []

    def take(self, *, another: bool = True) -> Worker:
        """A worker that is ready; `another` starts the next one at once."""
        if self.idle:
            return self.idle.pop()
        worker = self.spare or self._start()
        assert worker.answer() == {"ready": True}
        self.spare = self._start() if another else None
        return worker

    def killed(self, project: Deployed, *intervals: Interval, at: str, what: str = "run") -> None:
        """A worker that is killed when it passes that place."""
        worker = self.take()
        worker.tell(project, *intervals, failpoint=at, what=what)
        assert worker.answer() is None, "it was not killed"
        worker.kill()

    def give_back(self, worker: Worker) -> None:
        """One that lived through its test."""
        self.idle.append(worker)

    def stop(self) -> None:
        for worker in self.every:
            worker.kill()

    def _start(self) -> Worker:
        self.started += 1
        folder = self.folder / f"worker-{self.started}"
        worker = Worker.start(folder) if self.has_own_spark else Worker.fork(folder, self.remote)
        self.every.append(worker)
        return worker


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory, remote: str) -> Iterator[Pool]:
    pool = Pool(tmp_path_factory.mktemp("workers"), remote)
    pool.spare = pool._start()
    yield pool
    pool.stop()


@pytest.fixture(scope="session")
def session(pool: Pool, real_spark: SparkSession) -> SparkSession:
    """The test's own Spark, warm: it runs again what a crash has left."""
    for name, value in {**RUNTIME_CONF, **SMALL}.items():
        real_spark.conf.set(name, value)
    return real_spark


@pytest.fixture(scope="session")
def before(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A day was delivered and everything is up to date; then that day was corrected."""
    shop = Shop.create(tmp_path_factory.mktemp("shop") / "before")
    shop.land(1, *FIRST)
    shop.run(day(1))
    shop.land(1, *CORRECTED)
    return shop


@pytest.fixture(scope="session")
def undisturbed(before: Shop, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The state of a lake whose run went through."""
    shop = before.copy(tmp_path_factory.mktemp("undisturbed") / "shop")
    shop.run(day(1))
    shop.check()
    return shop.state()
