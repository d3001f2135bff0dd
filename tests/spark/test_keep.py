"""A program that is kept running, until somebody ends it or it can't be."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

KEEPER = (
    "import sys; from sluice.spark import keep; keep.LEAST, keep.PAUSE = 0.3, 0.1; "
    "sys.exit(keep.main(sys.argv[1:]))"
)
NOTES = "import os, time; open('pids', 'a').write(f'{os.getpid()}\\n'); time.sleep(60)"


@contextmanager
def keeper(folder: Path, code: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", KEEPER, sys.executable, "-c", code]
    process = subprocess.Popen(command, cwd=folder)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def test_what_was_killed_is_started_again_and_ends_with_its_keeper(tmp_path: Path) -> None:
    def pids() -> list[int]:
        noted = tmp_path / "pids"
        return [int(pid) for pid in noted.read_text().split()] if noted.exists() else []

    with keeper(tmp_path, NOTES) as process:
        assert eventually(lambda: len(pids()) == 1)
        time.sleep(0.4)
        psutil.Process(pids()[0]).kill()
        assert eventually(lambda: len(pids()) == 2)
        process.terminate()
        assert process.wait(60) == 0
    assert not psutil.pid_exists(pids()[1])


def test_what_ends_at_once_is_left_alone(tmp_path: Path) -> None:
    with keeper(tmp_path, "raise SystemExit(7)") as process:
        assert process.wait(60) == 7
