"""The rows of few touched groups, picked from large tables in this process.

A batch that touches some thousand groups needs few rows of tables that Spark would scan for
seconds. If the columns that name a group are plain columns of an exact type, their values find
these rows. The result may hold rows of other groups; the operator leaves them out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from sluice.delta.reading.local import handed_over, to_arrow
from sluice.delta.reading.searched_version import SearchedVersion
from sluice.delta.reading.spark_reads import snapshot
from sluice.engine.computing.batch_plan import BatchPlan
from sluice.engine.context import Context
from sluice.engine.query.operator import InputRows, Operator, names

GroupColumns = Mapping[str, str]  # columns of a table -> those of the group with the same values


@dataclass(frozen=True)
class Picked:
    """Touched groups, and rows that include all of theirs: of the inputs and of the table."""

    touched: DataFrame
    inputs: InputRows
    current: DataFrame


def picked(
    context: Context, plan: BatchPlan, touched: DataFrame, operator: Operator
) -> Picked | None:
    """Pick the rows of the touched groups; None if no table is large, or rows may be many.

    One small Spark job finds the groups.
    """
    inputs = {i: _searched(context, plan, i, operator) for i in operator.inputs}
    before = plan.before
    assert before is not None
    current = SearchedVersion(plan.uri, before.version, context.limits)
    named = {i: operator.named(i) for i in operator.inputs}
    if not any(p.is_large for p in (*inputs.values(), current)) or not all(named.values()):
        return None
    most = context.limits.picked_groups
    groups = to_arrow(touched.limit(most + 1))
    if groups.num_rows > most:
        return None
    reads = {i: _rows(searched, groups, named[i], touched) for i, searched in inputs.items()}
    own = _rows(current, groups, [{c: c for c in operator.group}], touched)
    found = {i: rows for i, rows in reads.items() if rows is not None}
    if own is None or len(found) < len(reads):
        return None
    few = touched.sparkSession.createDataFrame(groups, touched.schema)
    return Picked(few, found, own)


def picked_of(
    context: Context, plan: BatchPlan, touched: DataFrame, operator: Operator, input_id: str
) -> DataFrame | None:
    """Pick the touched groups' rows of one large input, like `picked`."""
    searched, named = _searched(context, plan, input_id, operator), operator.named(input_id)
    if not searched.is_large or not named:
        return None
    most = context.limits.picked_groups
    groups = to_arrow(touched.limit(most + 1))
    return None if groups.num_rows > most else _rows(searched, groups, named, touched)


def _searched(
    context: Context, plan: BatchPlan, input_id: str, operator: Operator
) -> SearchedVersion:
    uri, version = context.lake.uri(input_id), plan.pins[input_id].version
    return SearchedVersion(uri, version, context.limits, operator.columns(input_id))


def _rows(
    searched: SearchedVersion, groups: pa.Table, named: Iterable[GroupColumns], touched: DataFrame
) -> DataFrame | None:
    """Return the rows of a table that may be of the groups; all of them if there are few."""
    session = touched.sparkSession
    if not searched.is_large:
        whole = snapshot(session, searched.uri, searched.version, searched.limits)
        return whole.select(*names(tuple(searched.columns))) if searched.columns else whole
    wanted = [{c: groups[group] for c, group in columns.items()} for columns in named]
    rows = searched.rows(wanted)
    return None if rows is None else handed_over(session, searched.uri, searched.version, rows)
