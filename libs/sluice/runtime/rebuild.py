"""Rebuilding a table by its definition of today, in one commit that keeps what is the same.

Where the columns stay as they are the change feed gets the difference only. Where they change the
table is replaced whole, and its consumers have to be rebuilt too.
"""

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.diff import CHANGE, diff
from sluice.errors import UsageError
from sluice.runtime.batch import Run, next_position
from sluice.runtime.computation import Computation
from sluice.runtime.horizon import horizon_of
from sluice.runtime.nodes import Node, nodes_of
from sluice.runtime.plan import BatchPlan, Strategy, plan_rebuild
from sluice.runtime.report import BatchReport, Clock
from sluice.runtime.session import Spark
from sluice.runtime.writing import Target, write
from sluice.specs.project import Project
from sluice.specs.table import Table
from sluice.storage.commit import Committed, overwrite_spark
from sluice.storage.lake import layout
from sluice.storage.local import nullable
from sluice.storage.table import snapshot


def rebuild(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Recompute a view (and the internal tables behind it) from its inputs as they are now.

    Raises UsageError for a table that is not a view.
    """
    if not table.is_view:
        raise UsageError(
            f"{table.id} is a {table.kind}, which is filled from files, not computed",
            hint="deliver it again: changed files replace their rows, others are left alone",
        )
    nodes = nodes_of(table, project.graph)
    return tuple(_rebuild(spark, project, node, run) for node in nodes)


def _rebuild(spark: Spark, project: Project, node: Node, run: Run) -> BatchReport:
    clock = Clock()
    with clock.phase("plan"):
        plan = plan_rebuild(node, layout(project), project.graph)
    if plan.waiting_for:
        raise UsageError(f"{node.id} waits for {plan.waiting_for}")
    session = spark.tune(small=False)
    horizon = horizon_of(session, project, plan)
    position = replace(next_position(plan, run, horizon), kind="rebuild")
    computation = Computation(session, project, plan, position.batch, horizon)
    rows = computation.numbered(computation.query())
    target = Target(plan.uri, node.operator.key, plan.before, plan.size, node.partition_by)
    if plan.before is None:
        changelog = rows.withColumn(CHANGE, F.lit("insert"))
        done = write(session, project.spark, target, changelog, position, clock)
    elif _same_columns(session, plan, rows):
        old = snapshot(session, plan.uri, plan.before.version)
        changelog = diff(old, rows, node.operator.key, ignore=node.ignored)
        done = write(session, project.spark, target, changelog, position, clock)
    else:
        done = overwrite_spark(session, plan.before, rows, position)
    return _report(plan, position.batch, done, clock)


def _same_columns(session: SparkSession, plan: BatchPlan, rows: DataFrame) -> bool:
    assert plan.before is not None
    old = snapshot(session, plan.uri, plan.before.version).schema
    new = nullable(rows.schema)
    return {f.name: f.dataType for f in old.fields} == {f.name: f.dataType for f in new.fields}


def _report(plan: BatchPlan, batch: int, done: Committed, clock: Clock) -> BatchReport:
    return BatchReport(
        table=plan.node.id,
        kind=plan.node.table.kind,
        outcome="committed" if done.changed else "position",
        version=done.version,
        batch=batch,
        strategy=Strategy.BUILD.value,
        rows_in=plan.size.rows,
        inserted=done.inserted,
        updated=done.updated,
        deleted=done.deleted,
        seconds=clock.seconds,
    )
