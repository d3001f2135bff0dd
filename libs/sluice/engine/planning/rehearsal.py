"""Engine of a batch before it runs, found by compiling the batch over tables without rows.

A plan does this: no file of a table is opened, no Spark started. Values may still send the batch to
Spark, such as an overflow or more rows than this process takes.
"""

from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from sluice.engine.computing.batch_plan import BatchPlan
from sluice.engine.computing.batch_result import as_rows, settled
from sluice.engine.computing.horizon import recorded_horizon
from sluice.engine.context import Context
from sluice.engine.judging.checking import judged
from sluice.engine.planning.node import Node
from sluice.engine.planning.plan import rebuild_size
from sluice.engine.query.retention import Horizon
from sluice.spark.rehearsing import engine_of


def engine_of_batch(context: Context, node: Node, plan: BatchPlan, *, is_small: bool) -> str:
    """Return the engine of a node's planned batch, in the words of its report."""
    return engine_of(context.settings, partial(_compile, context, node, plan), is_small=is_small)


def engine_of_rebuild(context: Context, node: Node, plan: BatchPlan, *, is_known: bool) -> str:
    """Return the engine of a node's rebuild; by its size, unless all columns read are known."""

    def work(session: SparkSession) -> None:
        if is_known:
            _compile(context, node, replace(plan, before=None), session)

    is_small = rebuild_size(plan).bytes <= context.limits.computed_here_bytes
    return engine_of(context.settings, work, is_small=is_small)


def _compile(context: Context, node: Node, plan: BatchPlan, session: SparkSession) -> None:
    """Compute a batch over no rows, up to its commit. Raises NotHere."""
    number = plan.before.next_batch if plan.before else 1
    batch = node.batch(context, session, plan, number, _horizon(plan))
    changelog = settled(session, batch.result()).changelog
    if node.expectations:
        judged(node, as_rows(session, changelog))


def _horizon(plan: BatchPlan) -> Horizon | None:
    """Return a horizon that does not move, so the batch takes its normal path."""
    retention = plan.node.operator.retention
    if retention is None:
        return None
    return recorded_horizon(plan) or Horizon(retention, None, None)
