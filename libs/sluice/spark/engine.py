"""Engine of a piece of work, as reports and plans name it: this process, or Spark with the reason.

`engine_of` finds the engine that work would take, without doing it.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from sluice.declare.project import SparkSettings
from sluice.delta.reading.local import without_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


T = TypeVar("T")
BY_SETTINGS = "the project's `spark` settings leave small batches to it"
PROCESS, SPARK = "process", "spark"  # engines of a batch


def left_to_spark() -> tuple[type[Exception], ...]:
    """Return the errors by which the interpreter leaves work to Spark."""
    from google.protobuf.message import DecodeError
    from pyspark.errors import PySparkException

    from sluice.interpreter import UnsupportedLocally

    return UnsupportedLocally, PySparkException, DecodeError


def too_large(size: int, most: int) -> str:
    """Return why Spark does work that reads more bytes than `most`; '' if it reads no more."""
    return f"{size / 1e6:,.1f} MB are read at once" if size > most else ""


def by_spark(settings: SparkSettings, why: str) -> str:
    """Return SPARK with the reason; alone if the settings leave all work to it."""
    return f"{SPARK}: {why}" if why and settings.computes_here else SPARK


def engine_of(
    settings: SparkSettings, work: Callable[["SparkSession"], object], why: str = ""
) -> str:
    """Return the engine of `work` as a report names it; tables have no rows meanwhile.

    `work` compiles what would be computed. `why`: as of `Spark.best`.
    """
    if why or not settings.computes_here:
        return by_spark(settings, why)
    from sluice.interpreter.local_session import Session, interpreting

    try:
        with without_rows(), interpreting(Session()) as session:
            work(session)  # type: ignore[arg-type] # a client like others
    except left_to_spark() as reason:
        return f"{SPARK}: {reason}"
    return PROCESS


def reason_for_spark(engine: str) -> Iterator[str]:
    """Yield the reason, in words, why work is left to Spark, if it is."""
    name, _, reason = engine.partition(": ")
    if name == SPARK:
        yield f"by Spark: {reason or BY_SETTINGS}"
