"""The Spark Connect server of a stack, warm for all tasks that use it."""

import sys
from collections.abc import Mapping
from functools import partial

from daemons import Daemon, is_listening
from sluice.declare.project import Project
from sluice.spark.connect_server import command


def server(project: Project, port: int, extra: Mapping[str, str]) -> Daemon:
    """Return the project's Spark as a daemon on `port`; it is ready when the port answers."""
    words, environ = command(project.spark, port)
    kept = [sys.executable, "-m", "sluice.spark.keep", *words]
    return Daemon("spark-connect", kept, {**environ, **extra}, partial(is_listening, port))
