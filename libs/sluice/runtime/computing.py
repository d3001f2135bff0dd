"""A batch computed by the way that its plan names."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from sluice.operators.retention import Horizon
from sluice.operators.topk import TopKState
from sluice.runtime.cogroup import CogroupBatch
from sluice.runtime.computation import Computation
from sluice.runtime.computed import Computed
from sluice.runtime.plan import BatchPlan, Strategy
from sluice.runtime.rows import snapshots_at
from sluice.runtime.topk import TopKBatch, without_limit
from sluice.specs.project import Project

FROM_KEPT_ROWS = (Strategy.APPEND, Strategy.UPDATE, Strategy.RETRACT)
MERGED = (Strategy.ADDITIVE, Strategy.MERGE)


@contextmanager
def computing(
    session: SparkSession,
    project: Project,
    plan: BatchPlan,
    batch: int,
    horizon: Horizon | None,
) -> Iterator[Computed]:
    """What the batch comes to, for as long as the context is open."""
    has_fallen = horizon is not None and horizon.has_fallen
    if plan.strategy in (*FROM_KEPT_ROWS, Strategy.FULL) and not has_fallen:
        with TopKBatch(session, project, plan, horizon).computed() as computed:
            yield computed
        return
    if plan.strategy in MERGED and not has_fallen:
        merging = CogroupBatch(Computation(session, project, plan, batch, horizon))
        with merging.computed() as computed:
            yield computed
        return
    way = Strategy.BUILD if plan.strategy is Strategy.FULL else plan.strategy
    computation = Computation(session, project, replace(plan, strategy=way), batch, horizon)
    try:
        changelog, warnings = computation.changelog(), tuple(_warnings(computation))
        work = computation.work
        yield Computed(
            changelog,
            expired=work.expired,
            rows=work.rows,
            is_projection=work.is_projection,
            is_filed=work.is_filed,
            warnings=warnings,
        )
    finally:
        computation.work.release()


def expected(computation: Computation, rows: DataFrame) -> DataFrame:
    """What the table has to hold whose rows are `rows`: those of its query, but for slack."""
    operator, horizon = computation.plan.node.operator, computation.horizon
    if not isinstance(operator, TopKState):
        return computation.query()
    found = operator.acceptable(_inputs(computation), rows)
    return found.where(horizon.is_alive()) if horizon else found


def _warnings(computation: Computation) -> Iterator[str]:
    operator = computation.plan.node.operator
    if isinstance(operator, TopKState):
        for input_id, rows in _inputs(computation).items():
            yield from without_limit(operator, operator.prepare(input_id, rows))


def _inputs(computation: Computation) -> dict[str, DataFrame]:
    plan = computation.plan
    return snapshots_at(computation.session, computation.project, plan.node.operator, plan.pins)
