"""Errors of Spark in a view's rows or its query, in messages that name both.

In ANSI mode, a division by zero, an overflow or an invalid number ends the batch. A retry meets the
same row, and leaving the row out would make the view differ from its query. An exception in a
user's Python code ends the batch, too.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sluice.errors import ConfigError, QualityStop, SluiceError
from sluice.interpreter.refusals import DividedByZero

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
        return QualityStop(f"{table}: {_words(error)}", hint=GUARD)
    return None


def _fault(table: str, totals: Sequence[str], error: Exception) -> SluiceError | None:
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return None
    state = error.getSqlState() or ""
    if state.startswith(DATA) and (error.getCondition() or "").startswith(OVERFLOWS) and totals:
        words = f"{table}: one of {', '.join(totals)}: {_words(error)}"
        return QualityStop(words, hint=WIDEN)
    if state.startswith((DATA, RAISED)):
        return QualityStop(f"{table}: {_words(error)}", hint=GUARD)
    if state.startswith(QUERY):
        return ConfigError([f"{table}: {_words(error)}"], hint=MEND)
    if state.startswith(PYTHON):
        trace = str(error).partition("\n SQLSTATE:")[0].partition("\n\tat ")[0]
        line = trace.strip().rpartition("\n")[2].removeprefix("RuntimeError: ")
        return ConfigError([f"{table}: {line}"], hint=OWN)
    return None


def _words(error: Exception) -> str:
    """Return its first line without codes, and the affected part of the query."""
    line = str(error).strip().partition("\n")[0].partition(" SQLSTATE:")[0]
    text = ADVICE.sub("", line.partition("] ")[2] or line).strip()
    text = LONG_NUMBER.sub(r"\1...", text)
    fragments = [c.fragment() for c in error.getQueryContext()]  # type: ignore[attr-defined]
    about = next(filter(None, fragments), "")
    return f"{about!r}: {text}" if about else text
