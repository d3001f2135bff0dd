"""Background processes: found again by their folder, and stopped with all that they started."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from daemons import Daemon, Daemons, DidNotStart, memory

# A child in a session of its own, whose parent then ends: nothing but the mark leads to it.
ORPHAN = """
import subprocess, sys, time
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
subprocess.Popen([sys.executable, "-c", f"import subprocess; subprocess.Popen({sleep!r})"],
                 start_new_session=True)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[Daemons]:
    daemons = Daemons(tmp_path)
    yield daemons
    daemons.stop()


def daemon(daemons: Daemons, code: str, name: str = "one") -> Daemon:
    def is_ready() -> bool:
        return "ready" in daemons.log(name).read_text("utf-8")

    return Daemon(name, [sys.executable, "-c", code], {}, is_ready)


def started(daemons: Daemons, code: str) -> psutil.Process:
    one = daemon(daemons, code)
    daemons.start(one)
    daemons.wait(one)
    return daemons.running()["one"]


def test_stopping_leaves_nothing_of_it(daemons: Daemons) -> None:
    started(daemons, ORPHAN)
    deadline = time.monotonic() + 60
    while len(daemons.processes()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    mine = daemons.processes()
    assert len(mine) >= 2
    daemons.stop()
    assert not daemons.processes()
    assert not any(process.is_running() for process in mine)


def test_stopping_kills_the_deaf(daemons: Daemons, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daemons.PATIENCE", 0.5)
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True)"
    process = started(daemons, f"{deaf}; time.sleep(60)")
    daemons.stop()
    assert not process.is_running()


def test_another_script_finds_what_runs(daemons: Daemons) -> None:
    code = "import time; print('ready', flush=True); time.sleep(60)"
    process = started(daemons, code)
    assert started(daemons, code) == process, "it is not started again"
    assert Daemons(daemons.folder).running() == {"one": process}


def test_a_pid_used_again_is_not_taken_for_it(daemons: Daemons) -> None:
    me = psutil.Process()
    daemons.folder.mkdir(exist_ok=True)
    (daemons.folder / "one.pid").write_text(f'{{"pid": {me.pid}, "born": 1.0}}', "utf-8")
    assert daemons.running() == {}


def test_one_that_ends_before_it_is_ready_says_what_it_said(daemons: Daemons) -> None:
    one = daemon(daemons, "print('no room on the disk')")
    daemons.start(one)
    with pytest.raises(DidNotStart, match="one ended before it was ready:\nno room on the disk"):
        daemons.wait(one)


def test_memory_is_what_processes_hold(daemons: Daemons) -> None:
    code = "import time; held = bytearray(50_000_000); print('ready', flush=True); time.sleep(60)"
    assert memory([started(daemons, code)]) > 50_000_000
