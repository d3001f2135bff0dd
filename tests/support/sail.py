"""Sail: Spark Connect without a JVM, in this process, to run the tests of operators on.

One server a process, on a free port of the loopback interface. It has no login, so every user of
the machine can reach it while the process lasts; it listens on no other interface. It gets nothing
of the environment but what is set here, so that nothing sends its traces elsewhere.

No batch runs on it: some of its answers are not Spark's (a whole number that overflows wraps).
"""

import atexit
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import TYPE_CHECKING, Any

from sluice.errors import MissingDependency

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIED = "0.7.2"
LOOPBACK = "127.0.0.1"
PREFIX = "SAIL_"
SERVER_ENVIRONMENT: Mapping[str, str] = {
    "SAIL_MODE": "local",
    "SAIL_EXECUTION__DEFAULT_PARALLELISM": "1",  # few rows; and they stay in their order
    "SAIL_TELEMETRY__EXPORTER__OTLP__ENDPOINT": "",
    "SAIL_SPARK__SESSION_TIMEOUT_SECS": "86400",  # a run may do other things for long
    "RUST_LOG": "error",
}
# Those of Spark's settings that it takes; the others of a session have no effect.
CONF: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.ui.enabled": "false",
}
NO_PROXY = [("grpc.enable_http_proxy", 0)]  # a proxy has no business between a process and itself

_starting = Lock()
_server: Any = None


def check_version() -> None:
    """Raise MissingDependency for another version than the one that was tried."""
    try:
        found = version("pysail")
    except PackageNotFoundError:
        found = "none"
    if found != TRIED:
        raise MissingDependency(
            f"tests on Sail need pysail {TRIED}, the version that was tried; installed is {found}",
            hint=f"install pysail=={TRIED}, or leave out --engine sail",
        )


def open_session() -> "SparkSession":
    """A session of this process's server, with our settings; the first call starts the server."""
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession

    host, port = _address()
    channel = DefaultChannelBuilder(f"sc://{host}:{port}", NO_PROXY)
    session = SparkSession.Builder().channelBuilder(channel).create()
    for name, value in CONF.items():
        session.conf.set(name, value)
    return session  # type: ignore[return-value]


def stop() -> None:
    """End the server, if it was started; its sessions are gone with it."""
    global _server  # noqa: PLW0603 - one a process
    with _starting:
        if _server is not None:
            _server.stop()
            _server = None


def _address() -> tuple[str, int]:
    """Of the server, which the first call starts."""
    global _server  # noqa: PLW0603 - one a process
    with _starting:
        if _server is None:
            check_version()
            _server = _started()
            atexit.register(stop)
        address: tuple[str, int] = _server.listening_address
        return address


def _started() -> Any:
    with _environment():
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer(LOOPBACK, 0)
        server.start(background=True)
    return server


@contextmanager
def _environment() -> Iterator[None]:
    """Sail is set up by variables alone; those of others are hidden from it while it starts."""
    hidden = {n: v for n, v in os.environ.items() if n.startswith(PREFIX) or n == "RUST_LOG"}
    for name in hidden:
        del os.environ[name]
    os.environ.update(SERVER_ENVIRONMENT)
    try:
        yield
    finally:
        for name in SERVER_ENVIRONMENT:
            del os.environ[name]
        os.environ.update(hidden)
