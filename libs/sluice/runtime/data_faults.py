"""What Spark can't do with a view's rows, or with its query, in words that name both.

In ANSI mode a division by zero, an overflow or a text that holds no number ends the batch: a retry
meets the same row, and leaving the row out would make the view differ from its query.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sluice.errors import ConfigError, QualityStop, SluiceError

DATA, QUERY = "22", "42"  # the classes of SQLSTATE
GUARD = (
    "nothing was committed; guard the expression (try_cast, try_divide, nullif), "
    "or quarantine such rows at their source"
)
MEND = "mend the expression in the configuration; nothing was committed"


@contextmanager
def naming_data_faults(table: str) -> Iterator[None]:
    """A named error in place of Spark's where rows, or types, are not what an expression takes."""
    try:
        yield
    except Exception as error:
        if fault := _fault(table, error):
            raise fault from error
        raise


def _fault(table: str, error: Exception) -> SluiceError | None:
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return None
    state = error.getSqlState() or ""
    if state.startswith(DATA):
        return QualityStop(f"{table}: {_words(error)}", hint=GUARD)
    if state.startswith(QUERY):
        return ConfigError([f"{table}: {_words(error)}"], hint=MEND)
    return None


def _words(error: Exception) -> str:
    """Its first line without codes, and the part of the query that it is about."""
    line = str(error).strip().partition("\n")[0].partition(" SQLSTATE:")[0]
    text = line.partition("] ")[2] or line
    fragments = [c.fragment() for c in error.getQueryContext()]  # type: ignore[attr-defined]
    about = next(filter(None, fragments), "")
    return f"{about!r}: {text}" if about else text
