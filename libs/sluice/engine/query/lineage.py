"""Input rows of output rows, narrowed down by its kind.

A row comes from the prepared rows of its group, unless its kind says which of them. Input rows are
numbered by NTH, which `prepare` passes on.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pyspark.sql import DataFrame

from sluice.engine.query.operator import InputRows, Operator

NTH = "_sluice_walked"  # tables may have their own `_sluice_nth`


@dataclass(frozen=True)
class Groups:
    """Output `rows`, the prepared input rows of their groups, and all rows of the references."""

    rows: DataFrame
    prepared: InputRows
    references: InputRows


@runtime_checkable
class Lineage(Protocol):
    """Kind whose rows come from some of their groups' rows."""

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        """Return, by table, the rows with NTH that the output rows come from."""
        ...
