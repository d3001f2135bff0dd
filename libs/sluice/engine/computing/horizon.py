"""The horizon of a batch: the greatest event time among the current rows of the view's inputs."""

from datetime import datetime, timedelta
from functools import reduce

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from sluice.delta.log.time_bounds import not_before
from sluice.delta.places.lake_layout import LakeLayout
from sluice.engine.computing.batch_plan import BatchPlan
from sluice.engine.computing.input_snapshots import snapshots_at
from sluice.engine.context import Context
from sluice.engine.query.retention import Horizon, latest_time
from sluice.language.wall_clock import EPOCH


def horizon_of(session: SparkSession, context: Context, plan: BatchPlan) -> Horizon | None:
    """Return the horizon of the plan's view; None without retention. Takes one Spark job."""
    operator, retention = plan.node.operator, plan.node.operator.retention
    if retention is None:
        return None
    snapshots = snapshots_at(session, context, operator, plan.pins)
    late = {
        name: rows.where(_is_late(context.lake, plan, name)) for name, rows in snapshots.items()
    }
    rows = latest_time(late, retention)
    latest = rows.selectExpr("unix_micros(horizon) AS micros").collect()[0].micros
    position = plan.before.position if plan.before else None
    before, stored_from = (position.horizon, position.stored_from) if position else (None, None)
    return Horizon(retention, before, _time(latest), stored_from)


def _is_late(lake: LakeLayout, plan: BatchPlan, input_id: str) -> Column:
    """Return a condition that the input's latest row meets; scans then skip nearly all files."""
    assert plan.node.operator.retention is not None
    columns = plan.node.operator.retention.times.get(input_id, ())
    uri, version = lake.uri(input_id), plan.pins[input_id].version
    known = {column: not_before(uri, version, column) for column in columns}
    bounds = [F.col(f"`{c}`") >= F.lit(time) for c, time in known.items() if time and time.tzinfo]
    return reduce(Column.__or__, bounds) if len(bounds) == len(columns) > 0 else F.lit(True)


def recorded_horizon(plan: BatchPlan) -> Horizon | None:
    """Return the horizon in the table's position."""
    retention = plan.node.operator.retention
    if retention is None or plan.before is None or plan.before.position is None:
        return None
    position = plan.before.position
    at = position.horizon
    return Horizon(retention, at, at, position.stored_from)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)
