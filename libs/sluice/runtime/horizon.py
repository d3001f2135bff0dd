"""The horizon of a batch: the greatest event time among the current rows of the view's inputs."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from sluice.operators.retention import Horizon, latest_time
from sluice.runtime.plan import BatchPlan
from sluice.runtime.rows import snapshots_at
from sluice.specs.project import Project

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def horizon_of(session: SparkSession, project: Project, plan: BatchPlan) -> Horizon | None:
    """Where time stands for the plan's view; None for a view without retention. One Spark job."""
    operator = plan.node.operator
    if operator.retention is None:
        return None
    snapshots = snapshots_at(session, project, operator, plan.pins)
    rows = latest_time(snapshots, operator.retention)
    latest = rows.selectExpr("unix_micros(horizon) AS micros").collect()[0].micros
    position = plan.before.position if plan.before else None
    if position is None:
        return Horizon(operator.retention.keep, None, _time(latest))
    return Horizon(operator.retention.keep, position.horizon, _time(latest), position.stored_from)


def recorded_horizon(plan: BatchPlan) -> Horizon | None:
    """The horizon that the table's position names."""
    operator = plan.node.operator
    if operator.retention is None or plan.before is None or plan.before.position is None:
        return None
    position = plan.before.position
    at = position.horizon
    return Horizon(operator.retention.keep, at, at, position.stored_from)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)
