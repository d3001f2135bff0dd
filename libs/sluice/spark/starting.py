"""Errors in plain words for a Spark that does not start or does not last.

Its Java may end at once or during the work, or its server may be down.
"""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from sluice.errors import MissingDependency, Retryable, SluiceError
from sluice.extras import is_installed

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")
PORT = 15002
ENDING = 20.0  # seconds to wait for the exit code of a Java that ends
PATIENCE = 10.0  # seconds for a server to accept the connection; its client would try for minutes

HINTS = {  # by the scheme of an address
    "sc": "`sluice connect start` starts one here; SPARK_REMOTE, or spark.remote in sluice.yaml, "
    "names another; `engine: submit` needs none",
    "spark": "start it, or name another by spark.master in sluice.yaml",
}
OTHER_CLASSES = "local class incompatible"  # Java's words for a class of another release
REFUSED = "stopped SparkContext"  # by itself, since no master registered it
SHOWN_VERSION = re.compile(r'class="version"[^>]*>\s*([\d.]+)')

# PySpark logs to them the errors that it also raises, with long stack traces.
REPEATING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def hush() -> None:
    """Silence these loggers, so that only the error itself is shown."""
    from pyspark.logger import PySparkLogger

    for name in REPEATING:
        PySparkLogger.getLogger(name).disabled = True


def check_server(url: str) -> None:
    """Raise Retryable if nothing listens at `sc://host:port`, or at one master's `spark://`."""
    address = urlsplit(url)
    if address.scheme not in HINTS or not address.hostname or "," in url:
        return
    what = "Spark master" if address.scheme == "spark" else "Spark Connect server"
    place = (address.hostname, address.port or PORT)
    try:
        socket.create_connection(place, timeout=PATIENCE).close()
    except OSError as error:
        raise Retryable(
            f"no {what} answers at {place[0]}:{place[1]}: {error.strerror or error}",
            hint=HINTS[address.scheme],
        ) from None


def check_age(place: str, found: str) -> None:
    """Raise MissingDependency if the Spark there is older than the client."""
    client = version("pyspark-client")
    if is_older(found, client):
        raise MissingDependency(
            f"{place} is Spark {found}, older than the client here (pyspark {client})",
            hint=run_or_install(client, found),
        )


def run_or_install(here: str, there: str) -> str:
    """Return what mends two releases of Spark: exact numbers, since both packages must be equal."""
    packages = ("pyspark", "pyspark-client") if is_installed("spark") else ("pyspark-client",)
    pins = " ".join(f"'{name}=={there}'" for name in packages)
    return f"run Spark {minor(here)} there, or install its release here: pip install {pins}"


def _name_other_spark() -> MissingDependency:
    """Return the error for executors that could not read a task, with their version if shown."""
    context = None
    if is_installed("spark"):
        from pyspark import SparkContext

        context = SparkContext._active_spark_context  # noqa: SLF001 PySpark shows it nowhere else
    client, found = version("pyspark-client"), spark_of_workers(context) if context else ""
    place = f"executors of {context.master}" if context else "executors"
    theirs = f"Spark {found}" if found else "another Spark"
    hint = run_or_install(client, found) if found else f"run Spark {minor(client)} on its workers"
    return MissingDependency(
        f"{place} run {theirs}, which can't read tasks of Spark {client}", hint=hint
    )


def spark_of_workers(context: "SparkContext") -> str:
    """Return the version on the web page of a worker that runs an executor; '' if none shows it."""
    from urllib.request import urlopen

    executors = context._jsc.sc().statusStore().executorList(True)  # noqa: SLF001 as above
    for nth in range(executors.size()):
        logs = urlsplit(
            executors.apply(nth).executorLogs().values().mkString("\n").partition("\n")[0]
        )
        with suppress(OSError, ValueError):
            with urlopen(f"{logs.scheme}://{logs.netloc}/", timeout=PATIENCE) as page:
                shown = SHOWN_VERSION.search(page.read().decode("utf-8", "replace"))
            if shown:
                return shown[1]
    return ""


def is_older(found: str, than: str) -> bool:
    """True if the minor version of Spark is older; patches of one minor version fit each other."""
    return _numbers(found) < _numbers(than)


def minor(release: str) -> str:
    """Return `4.2` for 4.2.0."""
    return ".".join(release.split(".")[:2])


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, minor(release).split(".")))


def start_or_explain(start: Callable[[], T], java: Path, master: str) -> T:
    """Return what `start` returns; raise MissingDependency if Java or the master refuses."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkRuntimeError

    try:
        return start()
    except Py4JJavaError as error:
        if REFUSED not in _message_of(error):
            raise
        raise MissingDependency(
            f"{master} answers, but takes no application of Spark {version('pyspark')}",
            hint="its log and its web page name its version, which must be the same minor one",
        ) from error
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
    """Raise Retryable if Spark ran out of memory, or if its Java has ended or is about to.

    Raises MissingDependency if executors run another version of Spark.
    """
    try:
        yield
    except SluiceError:
        raise
    except Exception as error:
        if OTHER_CLASSES in _message_of(error):
            raise _name_other_spark() from error
        is_short = "OutOfMemoryError" in _message_of(error)  # Java's, or Spark's own
        is_ending, code = _look_at_java(error) if is_installed("spark") else (False, None)
        if code is None and not is_ending and not is_short:
            raise
        known = "" if code is None else f" (exit code {code})"
        ended = f"Spark's Java process ended during the work{known}"
        raise Retryable(
            "Spark ran out of memory" if is_short else ended,
            hint="nothing is half-written; run it again to continue. Where the log reports "
            "OutOfMemoryError, raise spark.driver.memory under spark: conf: in sluice.yaml",
        ) from error


def _look_at_java(error: Exception) -> tuple[bool, int | None]:
    """Return whether this process's Java stops Spark, and its exit code if it has ended."""
    from py4j.protocol import Py4JNetworkError

    is_ending = _is_ending()
    is_cut_off = isinstance(error, (Py4JNetworkError, ConnectionError))
    return is_ending, _java_ended(ENDING if is_ending or is_cut_off else 0)


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
