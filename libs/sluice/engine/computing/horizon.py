"""The horizon of a batch: the greatest event time among the current rows of the view's inputs."""

from datetime import datetime, timedelta
from functools import reduce

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.delta.log.time_bounds import not_before
from sluice.delta.reading.local import few_rows
from sluice.engine.computing.batch_plan import BatchPlan
from sluice.engine.computing.input_snapshots import snapshot_at
from sluice.engine.context import Context
from sluice.engine.query.retention import Horizon, latest_time
from sluice.language.wall_clock import EPOCH


def horizon_of(session: SparkSession, context: Context, plan: BatchPlan) -> Horizon | None:
    """Return the horizon of the plan's view; None without retention. Takes one Spark job."""
    operator, retention = plan.node.operator, plan.node.operator.retention
    if retention is None:
        return None
    late = {name: _late_rows(session, context, plan, name) for name in operator.inputs}
    rows = latest_time(late, retention)
    latest = rows.selectExpr("unix_micros(horizon) AS micros").collect()[0].micros
    position = plan.before.position if plan.before else None
    return Horizon(retention, position.horizon if position else None, _time(latest))


def _late_rows(
    session: SparkSession, context: Context, plan: BatchPlan, input_id: str
) -> DataFrame:
    """Return rows that include those with an input's latest times; few files are opened."""
    operator, pin, limits = plan.node.operator, plan.pins[input_id], context.limits
    assert operator.retention is not None
    columns = operator.retention.times.get(input_id, ())
    uri = context.lake.uri(input_id)
    known = {column: not_before(uri, pin.version, column) for column in columns}
    bounds = {column: time for column, time in known.items() if time and time.tzinfo}
    if len(bounds) < len(columns) or not columns:
        return snapshot_at(session, context, operator, input_id, pin)
    late = [pc.field(column) >= pc.scalar(time) for column, time in bounds.items()]
    where = reduce(pc.Expression.__or__, late)
    few = few_rows(session, uri, pin.version, where, limits, list(columns))
    if few is not None:
        return few
    late = [F.col(f"`{column}`") >= F.lit(time) for column, time in bounds.items()]
    rows = snapshot_at(session, context, operator, input_id, pin)
    return rows.where(reduce(Column.__or__, late))


def recorded_horizon(plan: BatchPlan) -> Horizon | None:
    """Return the horizon in the table's position."""
    retention = plan.node.operator.retention
    if retention is None or plan.before is None or plan.before.position is None:
        return None
    at = plan.before.position.horizon
    return Horizon(retention, at, at)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)
