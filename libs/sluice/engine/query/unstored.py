"""Rows of a table that is not stored, made from those of its inputs whenever it is read."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from pyspark.sql import DataFrame

from sluice.declare.registry import kind
from sluice.declare.table import Table


@runtime_checkable
class Unstored(Protocol):
    """Kind whose tables are not stored."""

    def compute_rows(self, table: Table, inputs: Mapping[str, DataFrame]) -> DataFrame:
        """Return a table's rows, given the rows of its inputs by id."""
        ...


def unstored_rows(table: Table, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of a table that is not stored, given those of its inputs by id."""
    unstored = kind(table.kind)
    assert isinstance(unstored, Unstored)
    return unstored.compute_rows(table, inputs)
