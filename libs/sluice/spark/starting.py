"""Errors in plain words for a Spark that does not start or does not last.

Its Java may end at once or during the work, or its server may be down.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TypeVar
from urllib.parse import urlsplit

from sluice.errors import MissingDependency, Retryable, SluiceError

T = TypeVar("T")
PORT = 15002
ENDING = 20.0  # seconds to wait for the exit code of a Java that ends
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
            hint="`sluice connect start` starts one here; SPARK_REMOTE, or spark.remote in "
            "sluice.yaml, names another; `engine: submit` needs none",
        ) from None


def check_age(place: str, found: str) -> None:
    """Raise MissingDependency if the Spark there is older than the client."""
    client = version("pyspark-client")
    if is_older(found, client):
        raise MissingDependency(
            f"{place} is Spark {found}, older than the client here (pyspark {client})",
            hint=f"run Spark {minor(client)} there, or install its client here: pip install "
            f"'pyspark-client=={minor(found)}.*'",
        )


def is_older(found: str, than: str) -> bool:
    """True if the minor version of Spark is older; patches of one minor version fit each other."""
    return _numbers(found) < _numbers(than)


def minor(release: str) -> str:
    """Return `4.2` for 4.2.0."""
    return ".".join(release.split(".")[:2])


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, minor(release).split(".")))


def start_or_explain(start: Callable[[], T], java: Path) -> T:
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
    """Raise Retryable if Spark ran out of memory, or if its Java has ended or is about to."""
    try:
        yield
    except SluiceError:
        raise
    except Exception as error:
        from py4j.protocol import Py4JNetworkError

        is_short = "OutOfMemoryError" in _message_of(error)  # Java's, or Spark's own
        is_ending = _is_ending()
        is_cut_off = isinstance(error, (Py4JNetworkError, ConnectionError))
        code = _java_ended(ENDING if is_ending or is_cut_off else 0)
        if code is None and not is_ending and not is_short:
            raise
        known = "" if code is None else f" (exit code {code})"
        ended = f"Spark's Java process ended during the work{known}"
        raise Retryable(
            "Spark ran out of memory" if is_short else ended,
            hint="nothing is half-written; run it again to continue. Where the log reports "
            "OutOfMemoryError, raise spark.driver.memory under spark: conf: in sluice.yaml",
        ) from error


def _is_ending() -> bool:
    """True if Java has begun to stop Spark, as it does when it ends, or does not answer.

    Java is asked, because a stopping Spark fails with any of a dozen messages.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    java = getattr(SparkContext._active_spark_context, "_jsc", None)  # noqa: SLF001 as below
    try:
        return bool(java and java.sc().isStopped())
    except (Py4JError, OSError):
        return True


def _message_of(error: Exception) -> str:
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
