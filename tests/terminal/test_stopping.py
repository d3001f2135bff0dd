"""Ctrl-C during a run: said at once, and a second one does not wait."""

import signal
import subprocess
import sys
import threading

import pytest

from sluice.terminal import SAID, stopping

WAITS = """
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Timer
from sluice.terminal import stopping

begun, end = Event(), Event()

def work():
    begun.set()
    end.wait(600)

try:
    with stopping(), ThreadPoolExecutor(1) as threads:
        Timer({ends_after}, end.set).start()
        threads.submit(work)
        begun.wait()
        print("begun", flush=True)
        time.sleep(600)
except KeyboardInterrupt:
    print("ended" if end.is_set() else "left", flush=True)
    raise SystemExit(130)
"""


def begun(ends_after: int) -> subprocess.Popen[str]:
    """Return a process whose thread is at work for so many seconds."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS.format(ends_after=ends_after)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def said_by(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    assert [process.stderr.readline() for _ in range(2)] == ["\n", SAID]


def test_ctrl_c_is_answered_while_a_batch_goes_on_and_a_second_one_ends_the_process() -> None:
    process = begun(ends_after=600)
    process.send_signal(signal.SIGINT)
    said_by(process)
    assert process.poll() is None, "the batch was not waited for"
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == -signal.SIGINT


def test_the_batch_at_work_ends_before_the_process() -> None:
    process = begun(ends_after=2)
    process.send_signal(signal.SIGINT)
    said_by(process)
    said, _ = process.communicate(timeout=60)
    assert (said, process.returncode) == ("ended\n", 130)


def test_the_handler_before_is_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), stopping():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_leaves_signals_alone() -> None:
    seen = []

    def work() -> None:
        with stopping():
            seen.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
