"""Processes that start at once: forks of a server that has imported what tests use.

A process from nothing imports for two seconds of a core. A fork shares no JVM and no thread with
the process that asks for it.
"""

import sys
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from typing import Any

_CONTEXT = get_context("forkserver")
_PARTS = ("sluice.", "tests.cli.trips", "tests.crash.", "tests.support.", "pyspark.sql.connect.")
_ALWAYS = ("sluice.cli.main", "sluice.cli.runs", "pyspark.sql.connect.session")
Pipe = _CONTEXT.Pipe


def forked(target: Callable[..., object], *arguments: Any) -> ForkServerProcess:
    """Start a fork that calls `target`. The first decides on what the server imports."""
    here = (name for name in sys.modules if name.startswith(_PARTS))
    wanted = [name for name in here if not name.startswith("sluice.airflow")]
    _CONTEXT.set_forkserver_preload([*_ALWAYS, *wanted])
    process = _CONTEXT.Process(target=target, args=arguments)
    process.start()
    return process
