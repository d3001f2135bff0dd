"""Processes that start at once: forks of a server that has imported what tests use.

A process from nothing imports for two seconds of a core. A fork shares no JVM and no thread with
the process that asks for it. It ends when that process does, also if a run of tests is killed.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerProcess
from typing import Any

from sluice.operate.workers import PR_SET_PDEATHSIG

_CONTEXT = get_context("forkserver")
_PARTS = ("sluice.", "tests.cli.trips", "tests.crash.", "tests.support.", "pyspark.sql.connect.")
_ALWAYS = ("sluice.cli.main", "sluice.cli.runs", "pyspark.sql.connect.session")
Pipe = _CONTEXT.Pipe


def forked(target: Callable[..., object], *arguments: Any) -> ForkServerProcess:
    """Start a fork that calls `target`. The first decides on what the server imports."""
    here = (name for name in sys.modules if name.startswith(_PARTS))
    wanted = [name for name in here if not name.startswith("sluice.airflow")]
    _CONTEXT.set_forkserver_preload([*_ALWAYS, *wanted])
    process = _CONTEXT.Process(target=call, args=(target, *arguments))
    process.start()
    return process


def call(target: Callable[..., object], *arguments: Any) -> None:
    """Call `target`; the server ends with the tests, and this process with the server."""
    server: Any = forkserver._forkserver
    os.close(server._forkserver_alive_fd)  # a server waits for the last process that holds it
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    target(*arguments)
