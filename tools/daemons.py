"""Background processes that leave nothing behind: they belong to a folder and are stopped together.

A daemon writes its log and a note of who it is (pid and time of birth, so that a pid used again
is never mistaken) to the folder. Any script with the folder can list and stop them: the one that
started them, or another one later. Stopping takes the tree below a daemon, in which tasks and JVMs
have sessions of their own, and whatever lost its parent but carries the folder's mark in its
environment (a process that rewrites its title overwrites that, so the mark alone is not enough).
"""

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from sluice.errors import SluiceError

PATIENCE = 8.0
MARK = "SLUICE_DAEMONS"


@dataclass(frozen=True)
class Daemon:
    """A program to leave running; `is_ready` shows when others may rely on it."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    is_ready: Callable[[], bool]


class DidNotStart(SluiceError):
    """A daemon that ended, or stayed silent, before it was ready."""


class Daemons:
    """Those of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, daemon: Daemon) -> None:
        """Starts it without waiting until it is ready; one that runs already is left alone."""
        if daemon.name in self.running():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log(daemon.name).open("wb") as log:
            process = subprocess.Popen(
                daemon.command,
                env={**daemon.environ, MARK: str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._remember(daemon.name, psutil.Process(process.pid))

    def wait(self, daemon: Daemon, timeout: float = 240) -> None:
        """Returns when it is ready."""
        deadline = time.monotonic() + timeout
        while daemon.name in self.running():
            if daemon.is_ready():
                return
            if time.monotonic() > deadline:
                raise self._failed(daemon.name, f"was not ready within {timeout:.0f} s")
            time.sleep(0.1)
        raise self._failed(daemon.name, "ended before it was ready")

    def running(self) -> dict[str, psutil.Process]:
        """Return the running daemons of this folder, by name."""
        noted = {note.stem: _process(note) for note in sorted(self.folder.glob("*.pid"))}
        return {name: process for name, process in noted.items() if process}

    def processes(self) -> list[psutil.Process]:
        """Every process of theirs, tasks and JVMs included."""
        trees = {process for root in self.running().values() for process in tree(root)}
        return list(trees.union(filter(self._is_marked, psutil.process_iter())))

    def stop(self) -> None:
        """Ends them all, politely first. Safe to repeat."""
        doomed = self.processes()
        for order in (psutil.Process.terminate, psutil.Process.kill):
            for process in doomed:
                _tell(process, order)
            _, alive = psutil.wait_procs(doomed, timeout=PATIENCE)
            doomed = list({*alive, *self.processes()})
        for note in self.folder.glob("*.pid"):
            note.unlink(missing_ok=True)

    def log(self, name: str) -> Path:
        """Return the file that takes a daemon's output."""
        return self.folder / f"{name}.log"

    def _is_marked(self, process: psutil.Process) -> bool:
        try:
            mine = process.environ().get(MARK) == str(self.folder)
            return bool(mine and process.pid != os.getpid())
        except psutil.Error:
            return False

    def _remember(self, name: str, process: psutil.Process) -> None:
        note = {"pid": process.pid, "born": process.create_time()}
        (self.folder / f"{name}.pid").write_text(json.dumps(note), "utf-8")

    def _failed(self, name: str, how: str) -> DidNotStart:
        log = self.log(name)
        return DidNotStart(f"{name} {how}:\n{tail_of(log)}", hint=f"its whole log is {log}")


def tail_of(log: Path, lines: int = 15) -> str:
    """The last lines of a log file."""
    try:
        return "\n".join(log.read_text("utf-8", errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"


def tree(root: psutil.Process) -> list[psutil.Process]:
    """A process and all below it."""
    try:
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def memory(processes: Iterable[psutil.Process]) -> int:
    """Bytes that they hold together; pages that they share are counted once."""
    return sum(_proportional_set(process) for process in processes)


def is_listening(port: int) -> bool:
    """Return True if something answers on that port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _proportional_set(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
    except (psutil.Error, OSError):
        return 0
    return int(getattr(full, "pss", full.rss))


def _process(note: Path) -> psutil.Process | None:
    try:
        known = json.loads(note.read_text("utf-8"))
        process = psutil.Process(known["pid"])
        same = abs(process.create_time() - known["born"]) < 1
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.Error, OSError, ValueError):
        return None


def _tell(process: psutil.Process, order: Callable[[psutil.Process], None]) -> None:
    try:
        order(process)
    except psutil.Error:
        return
