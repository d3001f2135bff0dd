"""Engine that work would take, found without doing it."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sluice.declare.settings import SparkSettings
from sluice.delta.reading.local import without_rows
from sluice.spark.session import PROCESS, SPARK, left_to_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def engine_of(
    settings: SparkSettings, work: Callable[["SparkSession"], object], *, is_small: bool
) -> str:
    """Return the engine of `work` as a report names it; tables have no rows meanwhile.

    `work` compiles what would be computed.
    """
    if not (is_small and settings.computes_here):
        return SPARK
    from sluice.interpreter.local_session import Session, interpreting

    try:
        with without_rows(), interpreting(Session()) as session:
            work(session)  # type: ignore[arg-type] # a client like others
    except left_to_spark() as reason:
        return f"{SPARK}: {reason}"
    return PROCESS


def why(settings: SparkSettings, engine: str, size: int, large: str = "") -> Iterator[str]:
    """Yield the reason, in words, why work that reads so many bytes is left to Spark, if it is.

    `large`: why it is too large for this process, if not because of these bytes.
    """
    name, _, reason = engine.partition(": ")
    if name != SPARK:
        return
    if not settings.computes_here:
        reason = "the project's `spark` settings leave small batches to it"
    yield f"by Spark: {reason or large or f'{size / 1e6:,.1f} MB are read at once'}"
