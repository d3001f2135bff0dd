"""One batch: what changed, which groups it touches, their new rows, the difference, one commit.

The step is the same for every kind of table; an operator says what its groups and its query are.
All strategies end in the diff against the rows that the table has, so a rerun commits nothing. A
lost race throws the diff away: the next attempt plans again from the new head.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.diff import CHANGE, diff
from sluice.changelog.net import WEIGHT, arrivals, as_inserts, net
from sluice.errors import LostRace
from sluice.operators.cogroup import CogroupState
from sluice.operators.lookup import BATCH, LookupJoin
from sluice.operators.operator import Operator, names, union, within
from sluice.operators.retention import Horizon
from sluice.runtime.gating import Delivered, checked
from sluice.runtime.horizon import horizon_of
from sluice.runtime.nodes import Node, nodes_of
from sluice.runtime.plan import BatchPlan, Strategy, plan_batch
from sluice.runtime.report import BatchReport, Clock
from sluice.runtime.rows import references_at, snapshots_at
from sluice.runtime.session import Spark
from sluice.runtime.writing import Target, write
from sluice.specs.project import Project
from sluice.specs.table import Table
from sluice.storage import table as delta
from sluice.storage.commit import Committed
from sluice.storage.lake import layout
from sluice.storage.position import Position

ATTEMPTS = 3
LARGE_BYTES = 64_000_000


@dataclass(frozen=True)
class Run:
    """What the tasks of one run share: its id, and the dimension versions that they use."""

    id: str = ""
    pins: Mapping[str, int] = field(default_factory=dict)


def advance(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Bring a view (and the internal tables behind it) up to its inputs. Safe to repeat."""
    return tuple(advance_node(spark, project, node, run) for node in nodes_of(table, project.graph))


def advance_node(spark: Spark, project: Project, node: Node, run: Run) -> BatchReport:
    """One batch of one node; starts again from the new head when another writer was first."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _attempt(spark, project, node, run)
        except LostRace:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError


def _attempt(spark: Spark, project: Project, node: Node, run: Run) -> BatchReport:
    clock = Clock()
    with clock.phase("plan"):
        plan = plan_batch(node, layout(project), project.graph, run.pins)
    if not plan.is_pending:
        return _nothing(plan, clock)
    with clock.phase("session"):
        session = spark.tune(small=plan.size.bytes < LARGE_BYTES)
    with clock.phase("compute"):
        horizon = horizon_of(session, project, plan)
        position = next_position(plan, run, horizon)
        changelog = changelog_of(session, project, plan, position.batch, horizon)
    target = Target(
        plan.uri, node.operator.key, plan.before, plan.size, partition_by=node.partition_by
    )
    batch = Delivered(run.id, position.batch, None, None)
    with clock.timed("check", checked(project, node, changelog, batch)) as passed:
        done = write(session, project.spark, target, passed.changelog, position, clock)
    return _report(plan, position, done, clock, passed.warnings)


def next_position(plan: BatchPlan, run: Run, horizon: Horizon | None) -> Position:
    """The position that the batch's commit will carry."""
    return Position(
        batch=plan.before.next_batch if plan.before else 1,
        attempt=uuid.uuid4().hex,
        kind="batch",
        definition=plan.node.definition,
        inputs=plan.pins,
        references=plan.references,
        frontier=plan.frontier,
        run=run.id,
        horizon=horizon.now if horizon else None,
    )


def changelog_of(
    session: SparkSession,
    project: Project,
    plan: BatchPlan,
    batch: int,
    horizon: Horizon | None,
) -> DataFrame:
    """The minimal changelog: the table's columns and CHANGE. Lazy."""
    if plan.strategy is Strategy.BUILD:
        rows = _numbered(plan.node, query(session, project, plan, horizon), batch)
        if plan.before is None:
            return rows.withColumn(CHANGE, F.lit("insert"))
        return diff(_current(session, plan), rows, plan.node.operator.key)
    old, new = _touched_rows(session, project, plan, batch, horizon)
    return diff(old, new, plan.node.operator.key, ignore=plan.node.ignored)


def query(
    session: SparkSession, project: Project, plan: BatchPlan, horizon: Horizon | None
) -> DataFrame:
    """The defining query at the plan's versions."""
    operator = plan.node.operator
    snapshots = snapshots_at(session, project, operator, plan.pins)
    rows = operator.query(snapshots, references_at(session, project, operator, plan))
    return _living(operator, rows, horizon)


def _living(operator: Operator, rows: DataFrame, horizon: Horizon | None) -> DataFrame:
    if horizon is None or operator.retention is None or not operator.retention.by_delete:
        return rows
    return rows.where(horizon.is_alive())


def _touched_rows(
    session: SparkSession,
    project: Project,
    plan: BatchPlan,
    batch: int,
    horizon: Horizon | None,
) -> tuple[DataFrame, DataFrame]:
    """Old and new rows of the touched groups."""
    operator = plan.node.operator
    changes = _changes(session, project, plan)
    current = _current(session, plan)
    references = references_at(session, project, operator, plan)
    if plan.strategy is Strategy.ROW_WISE:
        return _row_wise(session, plan, changes, references, batch)
    has_fallen = horizon is not None and horizon.has_fallen
    if isinstance(operator, CogroupState) and operator.is_additive and not has_fallen:
        return _added(operator, current, changes, horizon)
    snapshots = snapshots_at(session, project, operator, plan.pins)
    touched = _touched(operator, changes, snapshots)
    if horizon:
        touched = _with_crossed(operator, touched, current, snapshots, horizon)
    new = _living(operator, operator.recompute(snapshots, references, touched), horizon)
    old = within(current, touched, operator.group)
    return old, _numbered(plan.node, new, batch)


def _added(
    operator: CogroupState,
    current: DataFrame,
    changes: Mapping[str, DataFrame],
    horizon: Horizon | None,
) -> tuple[DataFrame, DataFrame]:
    """Old and new rows where the change can be added to what the table has."""
    change = operator.change({n: operator.prepare(n, c) for n, c in changes.items()})
    touched = change.select(*names(operator.group))
    if horizon:
        touched = union([touched, horizon.expired_groups(operator, current)]).distinct()
    old = within(current, touched, operator.group)
    return old, _living(operator, operator.apply(old, change), horizon)


def _with_crossed(
    operator: Operator,
    touched: DataFrame,
    current: DataFrame,
    snapshots: Mapping[str, DataFrame],
    horizon: Horizon,
) -> DataFrame:
    """Touched groups and those that the horizon crossed, in either direction."""
    assert operator.retention is not None
    if not operator.retention.by_delete:
        return touched
    crossed = [touched, horizon.expired_groups(operator, current)]
    if horizon.has_fallen:
        prepared = {n: operator.prepare(n, rows) for n, rows in snapshots.items()}
        crossed.append(horizon.returning_groups(operator, prepared))
    return union(crossed).distinct()


def _row_wise(
    session: SparkSession,
    plan: BatchPlan,
    changes: Mapping[str, DataFrame],
    references: Mapping[str, DataFrame],
    batch: int,
) -> tuple[DataFrame, DataFrame]:
    operator = plan.node.operator
    come = {n: operator.prepare(n, arrivals(c)) for n, c in changes.items()}
    new = operator.combine(come, references)
    if operator.mirror:
        gone = {
            n: operator.prepare(n, c.where(F.col(WEIGHT) < 0).drop(WEIGHT))
            for n, c in changes.items()
        }
        return operator.combine(gone, references), new
    old = within(_current(session, plan), operator.touched(changes), operator.group)
    return old, _numbered(plan.node, new, batch)


def _touched(
    operator: Operator, changes: Mapping[str, DataFrame], snapshots: Mapping[str, DataFrame]
) -> DataFrame:
    own = {n: c for n, c in changes.items() if n in operator.inputs}
    groups = [operator.touched(own)] if own else []
    others = {n: c for n, c in changes.items() if n not in operator.inputs}
    if isinstance(operator, LookupJoin) and others:
        groups.append(operator.concerned(snapshots[operator.facts.id], others))
    return union(groups).distinct() if operator.group else groups[0]


def _changes(session: SparkSession, project: Project, plan: BatchPlan) -> dict[str, DataFrame]:
    lake, operator = layout(project), plan.node.operator
    changes = {}
    for input_id, pin in plan.pins.items():
        columns = operator.columns(input_id)
        if input_id in plan.ranges:
            after, upto = plan.ranges[input_id]
            delta.check_feed(lake.uri(input_id), input_id, plan.node.id, after, upto)
            rows = delta.feed(session, lake.uri(input_id), after, upto)
            changes[input_id] = net(rows, columns or _data_columns(rows))
        elif _is_new(plan, input_id):
            rows = delta.snapshot(session, lake.uri(input_id), pin.version)
            changes[input_id] = as_inserts(rows, columns or rows.columns)
    return changes


def _is_new(plan: BatchPlan, input_id: str) -> bool:
    recorded = plan.before.position.inputs if plan.before and plan.before.position else {}
    return input_id not in recorded


def _data_columns(feed: DataFrame) -> list[str]:
    added = {"_change_type", "_commit_version", "_commit_timestamp"}
    return [c for c in feed.columns if c not in added]


def _current(session: SparkSession, plan: BatchPlan) -> DataFrame:
    assert plan.before is not None
    return delta.snapshot(session, plan.uri, plan.before.version)


def _numbered(node: Node, rows: DataFrame, batch: int) -> DataFrame:
    if BATCH not in node.ignored:
        return rows
    return rows.withColumn(BATCH, F.lit(batch).cast("bigint"))


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
    done: Committed,
    clock: Clock,
    warnings: tuple[str, ...],
) -> BatchReport:
    return BatchReport(
        table=plan.node.id,
        kind=plan.node.table.kind,
        outcome="committed" if done.changed else "position",
        version=done.version,
        batch=position.batch,
        strategy=plan.strategy.value,
        rows_in=plan.size.rows,
        inserted=done.inserted,
        updated=done.updated,
        deleted=done.deleted,
        seconds=clock.seconds,
        inputs=plan.ranges or {i: (0, p.version) for i, p in plan.pins.items()},
        warnings=warnings,
    )
