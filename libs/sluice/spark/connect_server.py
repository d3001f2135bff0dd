"""A Spark Connect server with a project's settings, on loopback, kept running in the background.

The protocol has no login, hence loopback. A server's keeper holds a lock on the file that notes
it, so a note without a lock is of a server that has ended, however it ended.
"""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from sluice.declare.project import SparkSettings
from sluice.errors import Retryable, UsageError
from sluice.extras import require
from sluice.spark import keep
from sluice.spark.java import environment
from sluice.spark.session import local_conf

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
HOST = "127.0.0.1"
ELSEWHERE = ("SPARK_HOME", "SPARK_REMOTE")  # would make it another Spark, or a client of one
STARTING, ENDING, PAUSE = 240.0, 30.0, 0.1  # seconds
TAIL = 15  # lines of its log


def command(
    settings: SparkSettings, port: int, conf: Mapping[str, str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """Return the command of the server, and its environment; `conf` overrides the settings."""
    require("spark", "a Spark Connect server")
    package = find_spec("pyspark")
    assert package is not None
    assert package.origin is not None
    conf = {
        **local_conf(settings),
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.app.name": "sluice-connect",
        **(conf or {}),
    }
    submit = str(Path(package.origin).parent / "bin" / "spark-submit")
    words = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    inherited = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    # spark-internal: the class is in Spark's own jars.
    return [submit, "--class", SERVER, *words, "spark-internal"], {**inherited, **environment()}


@dataclass(frozen=True)
class ConnectServer:
    """The server on one port of this machine, whether or not it runs."""

    port: int

    @property
    def remote(self) -> str:
        """Address for `spark.remote`."""
        return f"sc://{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        """File that takes its output."""
        return self._note.with_suffix(".log")

    @property
    def _note(self) -> Path:
        home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return Path(home) / "sluice" / f"connect-{self.port}.json"

    def keeper(self) -> int | None:
        """Return the process that keeps it running; None if it does not run."""
        try:
            with self._note.open() as note:
                if _lock(note):
                    return None
                return int(json.load(note)["pid"])
        except (OSError, ValueError):  # there is none, or it is being written
            return None

    def serve(self, settings: SparkSettings) -> int:
        """Keep it running in this process; return its exit code if that is impossible."""
        with self._lock_note() as note:
            _sign(note, os.getpid())
            return keep.main(*command(settings, self.port))

    def start(self, settings: SparkSettings) -> None:
        """Start it in the background, and return when it answers."""
        words, environ = command(settings, self.port)
        with self._lock_note() as note, self.log.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "sluice.spark.keep", *words],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[note.fileno()],  # the lock is the keeper's from now on
            )
            _sign(note, process.pid)
        self._await(process)

    def _lock_note(self) -> IO[str]:
        """Return the locked note. Raises UsageError if the port is taken."""
        if self._answers():
            raise UsageError(
                f"another program listens at {HOST}:{self.port}",
                hint="stop it, or give another --port",
            )
        self._note.parent.mkdir(parents=True, exist_ok=True)
        note = self._note.open("a+")
        if not _lock(note):
            note.close()
            raise Retryable(f"another process is starting a server at {self.remote}")
        return note

    def stop(self) -> bool:
        """End it, and return when it has ended; return whether it ran."""
        pid = self.keeper()
        if pid is None:
            return False
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + ENDING
        while self.keeper() == pid:
            if time.monotonic() > deadline:
                raise Retryable(
                    f"{self.remote} has not ended within {ENDING:.0f} s",
                    hint=f"its log is {self.log}; `kill -9 {pid}` ends its keeper",
                )
            time.sleep(PAUSE)
        return True

    def _await(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + STARTING
        while not self._answers():
            if process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                end = self.log.read_text("utf-8", errors="replace").splitlines()[-TAIL:]
                raise Retryable(
                    "\n".join(("the Spark Connect server did not start:", *end)),
                    hint=f"its whole log is {self.log}",
                )
            time.sleep(PAUSE)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((HOST, self.port)) == 0


def _sign(note: IO[str], pid: int) -> None:
    note.truncate(0)
    note.write(json.dumps({"pid": pid}))
    note.flush()


def _lock(note: IO[str]) -> bool:
    """Lock a note unless another process has; return whether it is ours."""
    try:
        fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
