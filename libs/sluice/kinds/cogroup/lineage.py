"""Rows that a cogroup's row comes from: those of its group or session."""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.engine.query import windows
from sluice.engine.query.lineage import Groups
from sluice.engine.query.operator import InputRows, Operator, same, within
from sluice.kinds.cogroup.operator import CogroupState


def contributing(operator: Operator, groups: Groups) -> InputRows:
    """Return the streams' rows of each group, or the state's row of each row."""
    if not isinstance(operator, CogroupState):
        prepared, key = groups.prepared.items(), operator.key
        return {name: within(found, groups.rows, key) for name, found in prepared}
    if not operator.is_session:
        return groups.prepared
    in_session = partial(_in_session, rows=groups.rows, group=operator.group)
    return {name: in_session(found) for name, found in groups.prepared.items()}


def _in_session(found: DataFrame, *, rows: DataFrame, group: tuple[str, ...]) -> DataFrame:
    time, start, end = (f"_in.{windows.TIME}", f"_of.{windows.START}", f"_of.{windows.END}")
    met = same("_in", "_of", group) & F.col(time).between(F.col(start), F.col(end))
    return found.alias("_in").join(rows.alias("_of"), met, "left_semi")
