"""Interpreter of Spark's plans for few rows: the same DataFrames, computed in this process.

PySpark's own client builds plans of Spark Connect's protocol. `local_session` passes them to its
`Service`, which computes them here instead of sending them to a server. No JVM runs and nothing
listens.

It computes only what certainly equals Spark's result. Everything else raises `UnsupportedLocally`
before any result: an unknown function, a rare type, and also every error in a value. The caller
then uses Spark, whose result or error counts.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class UnsupportedLocally(Exception):
    """A plan or a value that only Spark may compute; the message names it."""


class BadValue(UnsupportedLocally):
    """A value that an expression can't take, or only Spark can: Spark names it and its place."""


class DividedByZero(BadValue):
    """A division by zero, which Spark refuses, too. `place`: the part of the expression."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(f"{place!r}: {what}" if place else what)
        self.what, self.place = what, place


def is_here(session: "SparkSession") -> bool:
    """Return whether the session computes in this process, and leaves to Spark what it can't."""
    return type(session).__module__.startswith(__package__)


def drop_rows(session: "SparkSession") -> None:
    """Drop all rows that a session in this process has read and computed; it keeps those given."""
    if is_here(session):
        session.service.plans.forget()  # type: ignore[attr-defined] # the interpreter's own


def rehearse(rows: "DataFrame") -> "StructType":
    """Compile what computes the interpreter's rows, and return their columns.

    Called before a step that can't be repeated, because nothing after it is left to Spark. Raises
    UnsupportedLocally.
    """
    return rows.schema
