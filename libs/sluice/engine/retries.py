"""Retries of work that may succeed: at once after a lost race, after a pause if a store is down.

A retry must start from the current head, so `work` plans again each time.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import sleep

from sluice.delta.places.delta_rs import store_fault
from sluice.engine.batch_report import BatchReport
from sluice.engine.query.data_faults import division_fault
from sluice.errors import (
    DamagedFile,
    LostRace,
    MissingDependency,
    Retryable,
    SluiceError,
    UsageError,
)
from sluice.spark.paths import with_real_paths

PAUSES = (1.0, 4.0, 16.0)  # seconds
_TRANSIENT = re.compile(
    r"SQLTransient|SQLRecoverable|SQLNonTransientConnection|Communications ?link|"
    r"UnknownHostException|Connection (to \S+ )?(refused|reset|timed out)|SocketTimeout|"
    r"I/O error occurred|connection attempt failed|terminating connection|too many (clients|conn)|"
    r"connection slots are reserved|database system is (starting up|shutting down|in recovery)|"
    r"not (yet )?accepting connections|connection has been closed|conflict with recovery|"
    r"could not serialize access|deadlock|lock (wait )?timeout|"
    r"SlowDown|503 Service Unavailable|FAILED_READ_FILE.FILE_NOT_EXIST|"
    r"AWS Error (NETWORK_CONNECTION|SLOW_DOWN|SERVICE_UNAVAILABLE|REQUEST_TIMEOUT|INTERNAL_FAIL)|"
    r"curlCode|Input/output error|Stale file handle",
    re.IGNORECASE,
)
_BROKEN = "[FAILED_READ_FILE"
_REFUSED = re.compile(
    r"(?:SQL\w*Exception: (?:FATAL: |ERROR: )?|JDBC_EXTERNAL_ENGINE.*ERROR: )([^\n]*)"
)
_AWAY = "[FAILED_JDBC.CONNECTION]"
_NO_DRIVER = re.compile(r"No suitable driver|ClassNotFoundException: \S*[dD]river")


def with_retries(work: Callable[[], BatchReport]) -> BatchReport:
    """Return what `work` returns; the faults that were retried precede its warnings."""
    faults: list[str] = []
    for pause in (*PAUSES, None):
        try:
            done = work()
        except LostRace as race:
            if pause is None:
                raise
            faults.append(race.message)
        except Retryable as fault:
            if pause is None:
                raise
            faults.append(f"tried again after {pause:g} s: {fault.message}")
            sleep(pause)
        else:
            return replace(done, warnings=(*faults, *done.warnings))
    raise AssertionError


def is_transient(message: str) -> bool:
    """True if an error with this text may have passed by the next attempt."""
    return bool(_TRANSIENT.search(message))


@contextmanager
def naming_faults(table: str) -> Iterator[None]:
    """Raise Retryable instead of Spark's error if a store is down, and name lasting faults."""
    try:
        yield
    except SluiceError:
        raise  # already named, even if its text contains such words from the data
    except Exception as error:
        if named := store_fault(error) or division_fault(table, error):
            raise named from error
        message = with_real_paths("\n".join(_words(error)))
        line = message[max(message.find(_BROKEN), 0) :].partition("\n")[0]
        if fault := _TRANSIENT.search(message):
            raise Retryable(f"{table}: {line} ({fault[0]})") from error
        if _NO_DRIVER.search(message):
            hint = "name it in config/sluice.yaml, as `spark: {drivers: [postgresql]}`"
            raise MissingDependency(f"{table}: Spark has no driver for it", hint=hint) from None
        if refused := _REFUSED.search(message):
            hint = "the table is unchanged; a retry would fail in the same way"
            raise UsageError(f"{table}: the database says: {refused[1]}", hint=hint) from None
        if _AWAY in message:
            raise Retryable(f"{table}: {line}") from error
        if _BROKEN in message:
            hint = "nothing of this delivery was committed; fix the file, or remove it"
            raise DamagedFile(f"{table}: {line}", hint=hint) from error
        raise


def _words(error: BaseException | None) -> Iterator[str]:
    """Yield the words of an error and of its causes: Spark names a database's fault only there."""
    while error is not None:
        yield str(error)
        error = getattr(error, "_cause", None) or error.__cause__
