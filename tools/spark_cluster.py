"""A standalone Spark cluster on loopback: a master and workers, as in a small deployment.

Each worker has its own folder for scratch files and work. Folders of this machine can be hidden:
workers find them empty, like separate machines.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from daemons import Daemon, Daemons, is_listening
from ports import free_port
from sluice.spark.java import environment

PACKAGE = "org.apache.spark.deploy"
LOOPBACK = ("--host", "127.0.0.1")
WALL = 'cd "$1"; shift; IFS=:; for f in $HIDDEN; do mount -t tmpfs none "$f"; done; exec "$@"'


@dataclass(frozen=True)
class Cluster:
    """A master on `port` and workers of one core each, with their state in the daemons' folder.
    `hidden`: folders that workers find empty, on a Linux that lets this user mount.
    """

    daemons: Daemons
    port: int = field(default_factory=free_port)
    memory: str = "1g"
    extra: Mapping[str, str] = field(default_factory=dict)
    hidden: Sequence[Path] = ()

    @property
    def url(self) -> str:
        """Value for `spark.master`."""
        return f"spark://127.0.0.1:{self.port}"

    def start(self, workers: int) -> None:
        """Start the master, then that many workers; return when all are registered."""
        master = self._master()
        self.daemons.start(master)
        self.daemons.wait(master)
        self.add_workers(range(workers))

    def add_workers(self, numbers: Sequence[int]) -> None:
        """Start further workers; return when all are registered."""
        ready = [self._worker(nth) for nth in numbers]
        for worker in ready:
            self.daemons.start(worker)
        for worker in ready:
            self.daemons.wait(worker)

    def folder(self, nth: int) -> Path:
        """Return a worker's folder, whose `app-*/*` are those of its executors."""
        return self.daemons.folder / f"spark-worker-{nth}"

    def kill_worker(self, nth: int) -> None:
        """Kill a worker, as a power cut would."""
        process = self.daemons.running()[f"spark-worker-{nth}"]
        for child in process.children(recursive=True):
            child.kill()
        process.kill()

    def _master(self) -> Daemon:
        ports = ("--port", str(self.port), "--webui-port", str(free_port()))
        is_ready = partial(is_listening, self.port)
        return self._daemon("spark-master", "master.Master", ports, is_ready)

    def _worker(self, nth: int) -> Daemon:
        folder = self.folder(nth)
        scratch = folder / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        size = ("--cores", "1", "--memory", self.memory, "--webui-port", str(free_port()))
        arguments = (*size, "--work-dir", str(folder), self.url)
        log = self.daemons.log(folder.name)

        def is_registered() -> bool:
            return "Successfully registered" in log.read_text("utf-8", errors="replace")

        worker = self._daemon(folder.name, "worker.Worker", arguments, is_registered)
        own = {"SPARK_WORKER_DIR": str(folder), "SPARK_LOCAL_DIRS": str(scratch)}
        own |= {"TMPDIR": str(scratch), "HIDDEN": ":".join(map(str, self.hidden))}
        command = [*(walled() if self.hidden else ["sh", "-ec", WALL, "sh"]), str(folder)]
        return Daemon(
            worker.name, [*command, *worker.command], {**worker.environ, **own}, is_registered
        )

    def _daemon(self, name: str, main: str, arguments: tuple[str, ...], is_ready: object) -> Daemon:
        program = str(Path(sys.executable).with_name("spark-class"))
        command = [program, f"{PACKAGE}.{main}", *LOOPBACK, *arguments]
        inherited = {k: v for k, v in os.environ.items() if k not in ("SPARK_HOME", "SPARK_REMOTE")}
        places = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(self.daemons.folder)}
        environ = {**inherited, **environment(), **places, **self.extra}
        return Daemon(name, command, environ, is_ready)  # type: ignore[arg-type]


def walled() -> list[str]:
    """Return the command that runs another in a mount namespace, after the folder to run it in."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--mount", "sh", "-ec", WALL, "sh"]
