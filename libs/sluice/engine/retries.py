"""Retries of work that may succeed, and Spark's errors in messages that name a view and its query.

A retry must start from the current head, so `work` plans again each time.

In ANSI mode, a division by zero, an overflow or an invalid number ends the batch. A retry meets the
same row, and leaving the row out would make the view differ from its query. An exception in a
user's Python code ends the batch, too.
"""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import sleep

from sluice.delta.places.delta_rs import store_fault
from sluice.engine import BatchReport
from sluice.errors import (
    ConfigError,
    DamagedFile,
    LostRace,
    MissingDependency,
    QualityStop,
    Retryable,
    SluiceError,
    Unforeseen,
    UsageError,
)
from sluice.interpreter import DividedByZero
from sluice.spark.paths import with_real_paths
from sluice.spark.starting import lasting

log = logging.getLogger(__name__)
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


DATA, QUERY, PYTHON, RAISED = "22", "42", "38", "P0"  # classes of SQLSTATE
DIVISIONS = ("DIVIDE_BY_ZERO", "REMAINDER_BY_ZERO")
OVERFLOWS = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
GUARD = (
    "the table is unchanged; guard the expression (try_cast, try_divide, nullif), "
    "or quarantine such rows at their source"
)
WIDEN = (
    "the table is unchanged; whole numbers are summed as BIGINT, decimals and floating point as "
    "DECIMAL of 38 digits (20 before the point, of FLOAT and DOUBLE): cast to a wider type, use "
    "approx_sum or approx_avg, or quarantine such rows at their source"
)
MEND = "correct the expression in the configuration; the table is unchanged"
OWN = "the table is unchanged; correct the Python code or its arguments"
ADVICE = re.compile(  # Spark's advice to switch off checks
    r"\s*(If necessary set .* to bypass this error|Use 'try_\w+' to tolerate overflow)[^.]*\."
)
LONG_NUMBER = re.compile(r"(\d{12})\d{28,}")


@contextmanager
def naming_data_faults(table: str, totals: Sequence[str] = ()) -> Iterator[None]:
    """Replace an error of the engine by a named one if rows or types don't fit an expression.

    `totals`: the aggregates that may have overflowed; Spark does not report which.
    """
    try:
        yield
    except Exception as error:
        if fault := division_fault(table, error) or _fault(table, totals, error):
            raise fault from error
        raise


def division_fault(table: str, error: Exception) -> SluiceError | None:
    """Return the named error of a division by zero, by either engine; None for another error."""
    from pyspark.errors import PySparkException

    if isinstance(error, DividedByZero):
        return QualityStop(f"{table}: {error}", hint=GUARD)
    if isinstance(error, PySparkException) and error.getCondition() in DIVISIONS:
        return QualityStop(f"{table}: {_first_words(error)}", hint=GUARD)
    return None


def _fault(table: str, totals: Sequence[str], error: Exception) -> SluiceError | None:
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return None
    state = error.getSqlState() or ""
    if state.startswith(DATA) and (error.getCondition() or "").startswith(OVERFLOWS) and totals:
        words = f"{table}: one of {', '.join(totals)}: {_first_words(error)}"
        return QualityStop(words, hint=WIDEN)
    if state.startswith((DATA, RAISED)):
        return QualityStop(f"{table}: {_first_words(error)}", hint=GUARD)
    if state.startswith(QUERY):
        return ConfigError([f"{table}: {_first_words(error)}"], hint=MEND)
    if state.startswith(PYTHON):
        trace = str(error).partition("\n SQLSTATE:")[0].partition("\n\tat ")[0]
        line = trace.strip().rpartition("\n")[2].removeprefix("RuntimeError: ")
        return ConfigError([f"{table}: {line}"], hint=OWN)
    return None


def _first_words(error: Exception) -> str:
    """Return its first line without codes, and the affected part of the query."""
    line = str(error).strip().partition("\n")[0].partition(" SQLSTATE:")[0]
    text = ADVICE.sub("", line.partition("] ")[2] or line).strip()
    text = LONG_NUMBER.sub(r"\1...", text)
    fragments = [c.fragment() for c in error.getQueryContext()]  # type: ignore[attr-defined]
    about = next(filter(None, fragments), "")
    return f"{about!r}: {text}" if about else text


@contextmanager
def naming_unforeseen(table_id: str) -> Iterator[None]:
    """Raise a SluiceError instead of an unforeseen error, whose trace goes to the log."""
    try:
        with lasting():
            yield
    except SluiceError:
        raise
    except Exception as error:
        if fault := store_fault(error):
            raise fault from error
        log.info("%s failed", table_id, exc_info=True)
        first = str(error).strip().partition("\n")[0]
        what = f"{type(error).__name__}: {first}" if first else type(error).__name__
        raise Unforeseen(
            f"{table_id}: {what}", hint="a task's log has the trace, and `--debug` shows it"
        ) from error
