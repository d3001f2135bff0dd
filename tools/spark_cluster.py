"""A standalone Spark cluster on loopback: a master and workers, as a deployment of a few has it."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from daemons import Daemon, Daemons, free_port, is_listening
from sluice.spark.java import environment

PACKAGE = "org.apache.spark.deploy"
LOOPBACK = ("--host", "127.0.0.1")


@dataclass(frozen=True)
class Cluster:
    """A master on `port` and workers of one core each, their state in the daemons' folder."""

    daemons: Daemons
    port: int = field(default_factory=free_port)
    memory: str = "1g"
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """What `spark.master` is to be."""
        return f"spark://127.0.0.1:{self.port}"

    def start(self, workers: int) -> None:
        """The master, then that many workers; returns when all are registered."""
        master = self._master()
        self.daemons.start(master)
        self.daemons.wait(master)
        ready = [self._worker(nth) for nth in range(workers)]
        for worker in ready:
            self.daemons.start(worker)
        for worker in ready:
            self.daemons.wait(worker)

    def kill_worker(self, nth: int) -> None:
        """Ends a worker as a power cut would."""
        process = self.daemons.running()[f"spark-worker-{nth}"]
        for child in process.children(recursive=True):
            child.kill()
        process.kill()

    def _master(self) -> Daemon:
        ports = ("--port", str(self.port), "--webui-port", str(free_port()))
        is_ready = partial(is_listening, self.port)
        return self._daemon("spark-master", "master.Master", ports, is_ready)

    def _worker(self, nth: int) -> Daemon:
        name = f"spark-worker-{nth}"
        size = ("--cores", "1", "--memory", self.memory, "--webui-port", str(free_port()))
        folder = ("--work-dir", str(self.daemons.folder / name))
        log = self.daemons.log(name)

        def is_registered() -> bool:
            return "Successfully registered" in log.read_text("utf-8", errors="replace")

        return self._daemon(name, "worker.Worker", (*size, *folder, self.url), is_registered)

    def _daemon(self, name: str, main: str, arguments: tuple[str, ...], is_ready: object) -> Daemon:
        program = str(Path(sys.executable).with_name("spark-class"))
        command = [program, f"{PACKAGE}.{main}", *LOOPBACK, *arguments]
        inherited = {k: v for k, v in os.environ.items() if k not in ("SPARK_HOME", "SPARK_REMOTE")}
        places = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(self.daemons.folder)}
        environ = {**inherited, **environment(), **places, **self.extra}
        return Daemon(name, command, environ, is_ready)  # type: ignore[arg-type]
