"""Recognition of the interpreter's session, without importing it."""

from typing import TYPE_CHECKING

from sluice.interpreter.refusals import NotHere

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def is_here(session: "SparkSession") -> bool:
    """Return whether the session computes in this process, and leaves to Spark what it can't."""
    return type(session).__module__.startswith(__package__)


def leave_to_spark(rows: "DataFrame", what: str) -> None:
    """Raise NotHere if rows are the interpreter's."""
    if is_here(rows.sparkSession):
        raise NotHere(what)


def rehearse(rows: "DataFrame") -> "StructType":
    """Compile what computes the interpreter's rows, and return their columns. Raises NotHere.

    Called before a step that can't be repeated, because nothing after it is left to Spark.
    """
    return rows.schema
