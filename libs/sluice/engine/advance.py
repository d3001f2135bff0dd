"""One batch: net the changes, compute the touched groups' new rows, and commit the difference.

The step is the same for every kind of table; an operator supplies its groups and its query. Every
strategy ends in a diff against the table's current rows, so a rerun commits nothing. A lost race
discards the diff: the next attempt plans again from the new head.
"""

import uuid
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.commit import Committed
from sluice.delta.failpoint import passing
from sluice.delta.position import REBUILD, Position
from sluice.engine.aside import Delivered
from sluice.engine.checking import checked
from sluice.engine.computed import Carried, Computed
from sluice.engine.context import Context
from sluice.engine.data_faults import naming_data_faults
from sluice.engine.horizon import horizon_of
from sluice.engine.node import Node
from sluice.engine.nodes import nodes_of
from sluice.engine.plan import BatchPlan, Strategy, plan_batch
from sluice.engine.report import BatchReport, Clock
from sluice.engine.retention import Horizon
from sluice.engine.upkeep import tidy
from sluice.engine.writing import Target, write
from sluice.errors import LostRace
from sluice.spark.session import Spark

Advanced = tuple[BatchReport, Carried | None]
ATTEMPTS = 3


@dataclass(frozen=True)
class Run:
    """Id, dimension pins and options that the tasks of one run share.

    With `full_refresh`, unchanged files are read again. With `allow_empty`, a delivery without
    usable rows may replace one that had some.
    """

    id: str = ""
    pins: Mapping[str, int] = field(default_factory=dict)
    full_refresh: bool = False
    allow_empty: bool = False


def advance(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Bring a view, and the internal tables behind it, up to its inputs. Safe to repeat."""
    return advance_nodes(spark, project, nodes_of(table, project.graph), run)


def advance_nodes(
    spark: Spark, project: Project, nodes: Iterable[Node], run: Run
) -> tuple[BatchReport, ...]:
    """Run one batch of each node, handing what one has computed on to the next."""
    context, reports, carried = Context.of(project), [], None
    with ExitStack() as held:
        for node in nodes:
            report, carried = _advance(spark, context, node, run, carried, held)
            reports.append(report)
    return tuple(reports)


def _advance(
    spark: Spark,
    context: Context,
    node: Node,
    run: Run,
    carried: Carried | None,
    held: ExitStack,
) -> Advanced:
    """Run one batch of one node; start again from the new head if another writer was first.

    The report has a warning for every discarded attempt.
    """
    lost: list[str] = []
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with naming_data_faults(node.id, node.operator.totals):
                report, carried = _attempt(spark, context, node, run, carried, held)
        except LostRace as race:
            if attempt == ATTEMPTS:
                raise
            lost.append(race.message)
        else:
            if report.outcome == "committed":
                tidy(spark, context, node)
            return replace(report, warnings=(*lost, *report.warnings)), carried
    raise AssertionError


def _attempt(
    spark: Spark,
    context: Context,
    node: Node,
    run: Run,
    carried: Carried | None,
    held: ExitStack,
) -> Advanced:
    clock = Clock()
    with clock.phase("plan"):
        plan = plan_batch(node, context.lake, context.graph, context.limits, run.pins)
    if not plan.is_pending:
        return _nothing(plan, clock), None
    passing("pinned", node.id)
    with clock.phase("session"):
        session = node.batch.session_for(spark, context, plan.size)
    with clock.phase("compute"):
        horizon = horizon_of(session, context, plan)
        position = next_position(plan, run, horizon)
        if carried and carried.is_of(plan.ranges):
            computed = Computed(carried.changelog, Strategy.WITH_STATE)
        else:
            batch = node.batch(context, session, plan, position.batch, horizon, held)
            computed = batch.computed()
        position = replace(position, refills=position.refills + computed.refills)
    delivered = Delivered(run.id, position.batch, None, None)
    checking = checked(session, context.lake, node, computed.changelog, delivered)
    with clock.timed("check", checking) as passed:
        done = write(
            session,
            context,
            _target(plan, computed),
            passed.changelog,
            position,
            clock,
            is_projection=computed.is_projection,
        )
    report = _report(plan, position, computed, done, clock, passed.warnings)
    return report, Carried.after(plan, computed, done)


def _target(plan: BatchPlan, computed: Computed) -> Target:
    return Target(
        plan.uri,
        plan.node.operator.key,
        plan.before,
        plan.size if computed.rows is None else replace(plan.size, rows=computed.rows),
        partition_by=plan.node.partition_by,
        is_filed=computed.is_filed,
        replaces=plan.replaces,
    )


def next_position(plan: BatchPlan, run: Run, horizon: Horizon | None) -> Position:
    """Return the position that the batch's commit will carry."""
    last, there = plan.before.position if plan.before else None, plan.before or plan.replaces
    return Position(
        batch=there.next_batch if there else 1,
        attempt=uuid.uuid4().hex,
        kind=REBUILD if plan.replaces else "batch",
        definition=plan.node.definition,
        inputs=plan.pins,
        references=plan.references,
        frontier=plan.frontier,
        run=run.id,
        horizon=horizon.now if horizon else None,
        stored_from=horizon.stored_from_now if horizon else None,
        refills=last.refills if last else 0,
        parts=plan.node.parts,
    )


def _nothing(plan: BatchPlan, clock: Clock) -> BatchReport:
    before = plan.before
    warning = (f"{plan.node.id} waits for {plan.waiting_for}",) if plan.waiting_for else ()
    return BatchReport(
        table=plan.node.id,
        kind=plan.node.table.kind,
        outcome="waiting" if plan.waiting_for else "unchanged",
        version=before.version if before else None,
        batch=before.position.batch if before and before.position else None,
        seconds=clock.seconds,
        warnings=warning,
    )


def _report(
    plan: BatchPlan,
    position: Position,
    computed: Computed,
    done: Committed,
    clock: Clock,
    warnings: tuple[str, ...],
) -> BatchReport:
    return replace(
        BatchReport.of(plan.node.id, plan.node.table.kind, done, clock),
        batch=position.batch,
        strategy=computed.strategy or plan.strategy,
        reason=plan.reason,
        recomputed=computed.recomputed,
        expired=computed.expired,
        rows_in=plan.size.rows,
        refills=computed.refills,
        inputs=plan.ranges or {i: (0, p.version) for i, p in plan.pins.items()},
        warnings=(*computed.warnings, *warnings),
    )
