"""Errors in plain words for a Spark that does not start or does not last.

Its Java may end at once or during the work, or its server may be down.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TypeVar
from urllib.parse import urlsplit

from sluice.errors import MissingDependency, Retryable, SluiceError

T = TypeVar("T")
PORT = 15002
STOPPED = (
    "SparkContext was shut down",
    "stopped SparkContext",
    'SparkContext.dagScheduler()" is null',
)
ENDING = 20.0  # seconds that Java takes to end, once it has begun to
PATIENCE = 10.0  # seconds for a server to accept the connection; its client would try for minutes


# PySpark logs to them the errors that it also raises, with long stack traces.
REPEATING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def hush() -> None:
    """Silence these loggers, so that only the error itself is shown."""
    from pyspark.logger import PySparkLogger

    for name in REPEATING:
        PySparkLogger.getLogger(name).disabled = True


def check_server(remote: str) -> None:
    """Raise Retryable if nothing listens at `sc://host:port`."""
    address = urlsplit(remote)
    if address.scheme != "sc" or not address.hostname:
        return
    place = (address.hostname, address.port or PORT)
    try:
        socket.create_connection(place, timeout=PATIENCE).close()
    except OSError as error:
        raise Retryable(
            f"no Spark Connect server answers at {place[0]}:{place[1]}: {error.strerror or error}",
            hint="start it, or name another by SPARK_REMOTE or spark.remote in sluice.yaml; "
            "`engine: submit` needs none",
        ) from None


def started(start: Callable[[], T], java: Path) -> T:
    """Return what `start` returns; raise MissingDependency if Java ended before Spark was up."""
    from pyspark.errors import PySparkRuntimeError

    try:
        return start()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise MissingDependency(
            f"Spark did not start: the Java at {java} ended at once",
            hint=f"its output is above; check that `{java}/bin/java -version` runs, and that the "
            "machine has the memory that spark.driver.memory in sluice.yaml requests",
        ) from None


@contextmanager
def lasting() -> Iterator[None]:
    """Raise Retryable if Spark ran out of memory, or if its Java had ended."""
    try:
        yield
    except SluiceError:
        raise
    except Exception as error:
        said = _said(error)
        is_short = "OutOfMemoryError" in said  # Java's, or Spark's own
        code = _java_ended(ENDING if _is_cut_off(error, said) else 0)
        if code is None and not is_short:
            raise
        ended = f"Spark's Java process ended during the work (exit code {code})"
        raise Retryable(
            "Spark ran out of memory" if is_short else ended,
            hint="nothing is half-written; run it again to continue. Where the log reports "
            "OutOfMemoryError, raise spark.driver.memory under spark: conf: in sluice.yaml",
        ) from error


def _is_cut_off(error: Exception, said: str) -> bool:
    """True if Java does not answer, or answers that it is about to end."""
    from py4j.protocol import Py4JNetworkError

    is_gone = isinstance(error, (Py4JNetworkError, ConnectionError))
    return is_gone or any(text in said for text in STOPPED)


def _said(error: Exception) -> str:
    """Return the error's message; '' if Java has ended and can't return it."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001
        return ""


def _java_ended(within: float) -> int | None:
    """Return the exit code of the Java that this process started, if it has ended or ends now."""
    from pyspark import SparkContext

    java = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 PySpark shows it nowhere else
    try:
        code: int | None = java.wait(within) if java else None
    except TimeoutExpired:
        return None
    return code
