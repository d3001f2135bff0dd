"""Late rows of a cogroup: retention had already expired their windows when they arrived.

Each function returns one row with the one column LATE, which is null if there are none.
"""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.changes.net import WEIGHT
from sluice.engine.query import windows
from sluice.engine.query.lateness import LATE, late_of_change
from sluice.engine.query.operator import names, union
from sluice.kinds.cogroup.operator import CogroupState


def late_of_all(state: CogroupState, groups: DataFrame, alive: Column) -> DataFrame:
    """Count late rows among those that form the groups of a whole query."""
    rows = sum(names(state.row_counts), F.lit(0))
    return groups.where(~alive).agg(F.sum(rows).alias(LATE))


def late_in_sessions(
    state: CogroupState,
    prepared: Iterable[DataFrame],
    current: Iterable[DataFrame],
    alive: Column,
) -> DataFrame:
    """Count late rows of a change to sessions; their bounds depend on the rows now (`current`)."""
    columns = names((*state.spec.key, windows.TIME, windows.END))
    stays = [rows.select(*columns, F.lit(0).alias(WEIGHT)) for rows in current]
    comes = [rows.where(F.col(WEIGHT) > 0).select(*columns, WEIGHT) for rows in prepared]
    rows = windows.sessions(union([*stays, *comes]), state.spec.key, state.spec.window)
    return late_of_change([rows], alive)
