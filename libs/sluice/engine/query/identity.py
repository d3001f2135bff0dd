"""The identity that a view's rows keep of the input rows from which they come.

A key column that stays visible under its own name is used directly; any other becomes a hidden
column. So the input's key breaks ties, and a changed row finds its old self.
"""

from collections.abc import Collection

from pyspark.sql import Column
from pyspark.sql import functions as F

from sluice.declare.table import Table, carried_columns


def hidden_columns(view: Table, source: Table, present: Collection[str]) -> list[Column]:
    """Return the carried columns that are neither in the view nor in `present`."""
    pairs = carried_columns(view, source).items()
    return [
        F.col(f"`{name}`").alias(out)
        for out, name in pairs
        if out not in view.columns and out not in present
    ]
