"""One batch: net the changes, compute the touched groups' new rows, and commit the difference.

The step is the same for every kind of table; an operator supplies its groups and its query. Every
strategy ends in a diff against the table's current rows, so a rerun commits nothing. A lost race
discards the diff: the next attempt plans again from the new head.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from sluice.declare.meaning import meaning
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import REBUILD, Position
from sluice.delta.places.failpoint import passing
from sluice.delta.writing.own_commits import Committed
from sluice.engine import BatchReport
from sluice.engine.batch import Batch, horizon_of
from sluice.engine.batch_plan import BatchPlan, BatchResult, Carried, Context, Strategy, settle
from sluice.engine.committing import Target, write
from sluice.engine.engine_choice import touched_if_in_doubt, why_not_here
from sluice.engine.judging import JudgedBatch, check_changelog
from sluice.engine.operator import Operator
from sluice.engine.plan import Node, nodes_of, plan_batch, whole_size
from sluice.engine.retries import naming_data_faults
from sluice.engine.upkeep import tidy
from sluice.engine.windows import Horizon
from sluice.errors import LostRace
from sluice.interpreter import UnsupportedLocally, is_here
from sluice.meter import Clock
from sluice.spark.session import Spark

StepResult = tuple[BatchReport, Carried | None]
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
    return tuple(advance_by_batch(spark, project, table, run))


def advance_by_batch(
    spark: Spark, project: Project, table: Table, run: Run
) -> Iterator[BatchReport]:
    """Advance as `advance` does, but yield each report when its batch is done."""
    return advance_nodes(spark, project, nodes_of(table, project.graph), run)


def advance_nodes(
    spark: Spark, project: Project, nodes: Iterable[Node], run: Run
) -> Iterator[BatchReport]:
    """Run one batch of each node, pass computed rows to the next, and yield the reports."""
    context, carried = Context.of(project), None
    with ExitStack() as held:
        for node in nodes:
            report, carried = _Step(spark, context, node, run, carried, held).take()
            yield report


@dataclass(frozen=True)
class _Step:
    """The next batch of one node. `carried`: its changelog, if the batch before has computed it."""

    spark: Spark
    context: Context
    node: Node
    run: Run
    carried: Carried | None
    held: ExitStack

    def take(self) -> StepResult:
        """Run the batch; start again from the new head if another writer was first.

        The report has a warning for every discarded attempt.
        """
        node, lost = self.node, list[str]()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with naming_data_faults(node.id, node.operator.totals):
                    report, carried = self._attempt()
            except LostRace as race:
                if attempt == ATTEMPTS:
                    raise
                lost.append(race.message)
            else:
                if report.outcome == "committed":
                    tidy(self.spark, node.kept.of(self.context, node))
                return replace(report, warnings=(*lost, *report.warnings)), carried
        raise AssertionError

    def _attempt(self) -> StepResult:
        clock, context, node = Clock(), self.context, self.node
        with clock.phase("plan"):
            plan = plan_batch(node, context.lake, context.graph, self.run.pins)
        if not plan.is_pending:
            return _nothing(plan, clock), None
        passing("pinned", node.id)
        ready = self.carried if self.carried and self.carried.is_of(plan.ranges) else None
        with clock.phase("plan"):
            touched = None if ready else touched_if_in_doubt(context, node, plan)
        read = plan.size
        if touched and touched.are_many(context.limits):
            read += touched.size

        def work(session: SparkSession) -> StepResult:
            return self._commit(session, plan, ready, clock)

        is_of_spark = ready is not None and not isinstance(ready.changelog, pa.Table)
        limits = context.limits.for_weight(node.operator.weight)
        why = "Spark has computed its changes" if is_of_spark else ""
        why = why or why_not_here(limits, plan, touched)
        (report, after), engine = self.spark.best(work, read.bytes, limits, clock=clock, why=why)
        return replace(report, engine=engine), after

    def _commit(
        self, session: SparkSession, plan: BatchPlan, ready: Carried | None, clock: Clock
    ) -> StepResult:
        context = self.context
        if is_here(session):
            context = replace(context, limits=context.limits.of_process())
        with clock.phase("compute"):
            horizon = horizon_of(session, context, plan)
            position = next_position(plan, self.run, horizon)
            batch = self.node.batch(context, session, plan, position.batch, horizon, self.held)
            known = BatchResult(ready.changelog, Strategy.WITH_STATE) if ready else None
            result = settle(session, known or batch.result())
            position = replace(position, refills=position.refills + result.refills)
        judged = JudgedBatch(self.run.id, position.batch, None, None)
        checking = check_changelog(session, context.lake, self.node, result.changelog, judged)
        target = _target(plan, result, whole_size(context.lake, plan))
        is_projection = result.is_projection
        with clock.timed("check", checking) as passed:
            rows = passed.changelog
            done = write(
                session, context, target, rows, position, clock, is_projection=is_projection
            )
        warnings = (*passed.warnings, *_notes_on(batch, done))
        report = _report(plan, position, result, done, clock, warnings)
        return report, Carried.after(plan, result, done)


def _notes_on(batch: Batch[Operator], done: Committed) -> tuple[str, ...]:
    """Return a batch's notes on what it has committed; a commit is not begun again for them."""
    try:
        return batch.warnings_of(done)
    except UnsupportedLocally:
        return ()


def _target(plan: BatchPlan, result: BatchResult, whole: int) -> Target:
    return Target(
        plan.uri,
        plan.node.operator.key,
        plan.before,
        plan.size if result.rows is None else replace(plan.size, rows=result.rows),
        partition_by=plan.node.partition_by,
        is_filed=result.is_filed,
        replaces=plan.replaces,
        whole=whole,
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
        refills=last.refills if last else 0,
        parts=plan.node.parts,
        meaning=meaning(plan.node.table),
    )


def _nothing(plan: BatchPlan, clock: Clock) -> BatchReport:
    report = BatchReport.unchanged(plan.node.id, plan.node.table.declared_kind, plan.before)
    report = replace(report, seconds=clock.seconds)
    if not plan.waiting_for:
        return report
    warning = f"{plan.node.id} waits for {plan.waiting_for}"
    return replace(report, outcome="waiting", warnings=(warning,))


def _report(
    plan: BatchPlan,
    position: Position,
    result: BatchResult,
    done: Committed,
    clock: Clock,
    warnings: tuple[str, ...],
) -> BatchReport:
    return replace(
        BatchReport.of(plan.node.id, plan.node.table.declared_kind, done, clock),
        batch=position.batch,
        strategy=result.strategy or plan.strategy,
        reason=plan.reason,
        recomputed=result.recomputed,
        expired=result.expired,
        rows_in=plan.size.rows,
        refills=result.refills,
        inputs=plan.ranges or {i: (0, p.version) for i, p in plan.pins.items()},
        warnings=(*result.warnings, *warnings),
    )
