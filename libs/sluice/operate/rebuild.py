"""Rebuild of a table by its current definition, in one commit of the difference.

A definition that differs from the lake's asks for it. In an environment and in a promotion, the
tables that depend on such a table are brought up to it, too.

A view is recomputed from its inputs, or only for new parts of its definition. A source is rebuilt
from its deliveries or its files; a dimension is loaded whole. The change feed gets only the
difference. Views over the table follow by that feed; those that can't are rebuilt as well. Small
tables are rebuilt in this process, like small batches.

Rows that an environment has computed already, for a promotion that would compute the same.

A table's rows follow from its definition and its inputs' rows. If both agree with those of the
lake, the environment's rows are the result, and a promotion compares them instead of computing
them. Whatever is uncertain is computed. Rows that expire depend on earlier batches, too, so tables
with retention are computed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.continuity import check_fit, is_of_another, is_past, redefinitions
from sluice.delta.log.files import FeedSize, table_size
from sluice.delta.log.opened import exists
from sluice.delta.log.position import REBUILD, Head, Pin, head_as_found
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.delta.reading.local import column_types
from sluice.delta.reading.spark_reads import snapshot
from sluice.engine import BatchReport
from sluice.engine.advance import Run, advance, advance_nodes, next_position
from sluice.engine.batch import Extension, horizon_of
from sluice.engine.batch_plan import BatchPlan, Context
from sluice.engine.committing import Swapped, Target, swap
from sluice.engine.plan import (
    Node,
    nodes_of,
    plan_batch,
    plan_rebuild,
    rebuild_size,
    whole_size,
    with_taken_columns,
)
from sluice.engine.retries import naming_data_faults
from sluice.errors import ForeignCommit, HistoryLost, SluiceError, UsageError
from sluice.language.names import DELIVERIES, internal
from sluice.limits import Limits
from sluice.meter import Clock
from sluice.operate.delivering import delivering
from sluice.operate.preview import downstream
from sluice.spark.engine import too_large
from sluice.spark.session import Spark


def redefined_parts(project: Project, table: Table) -> dict[str, str]:
    """Return the differences by stored table: the table itself, and its internal tables."""
    lake = layout(project)
    return redefinitions(table, lambda name: head_as_found(lake.uri(name)))


def to_rebuild(project: Project) -> list[Table]:
    """Return the tables that were filled by other definitions, inputs first."""
    return [t for t in project.graph.tables.values() if redefined_parts(project, t)]


def to_bring(project: Project) -> list[Table]:
    """Return the tables that differ, views that are new or behind, and all views over them.

    Inputs come first. Views also lag after a process that updated them was killed.
    """
    graph = project.graph
    every = graph.tables.values()
    differ = [t for t in every if redefined_parts(project, t) or _is_behind(project, t)]
    ids = {table.id for table in (*differ, *downstream(project, differ))}
    return [table for table in graph.tables.values() if table.id in ids]


def _is_behind(project: Project, table: Table) -> bool:
    """True if a view is not built, or not up to its inputs; false if nobody can know."""
    if not (table.is_view and table.is_stored):
        return False
    from sluice.read.pending import pending

    try:
        return not exists(layout(project).uri(table.id)) or bool(pending(project, table))
    except SluiceError:
        return False


def bring(
    spark: Spark, project: Project, table: Table, run: Run, computed: "Computed | None" = None
) -> Iterable[BatchReport]:
    """Rebuild a table that another definition filled; bring any other view up to its inputs.

    `computed`: an environment whose rows are taken over if they are the result.
    """
    if redefined_parts(project, table):
        return rebuild(spark, project, table, run, computed=computed)
    if not table.is_view:
        return ()
    if computed:
        return take_over(spark, project, table, run, computed)
    return advance(spark, project, table, run)


@dataclass(frozen=True)
class ComputedRows:
    """A table of an environment whose rows are those that the lake's table should have."""

    at: Head

    @property
    def size(self) -> FeedSize:
        return table_size(self.at.uri, self.at.version)

    def rows(self, session: SparkSession, limits: Limits) -> DataFrame:
        return snapshot(session, self.at.uri, self.at.version, limits)


@dataclass(frozen=True)
class Computed:
    """An environment's tables, and those that the lake has taken over from it in this promotion."""

    env: Project
    _taken: dict[str, tuple[Head, Pin]] = field(default_factory=dict)

    def find(self, plan: BatchPlan, lake: LakeLayout) -> ComputedRows | None:
        """Return the rows that a planned rebuild would compute; None if that is not certain."""
        there, node = head_as_found(layout(self.env).uri(plan.node.id)), plan.node
        position = there.position if there and there.is_filled else None
        if there is None or position is None or node.operator.retention or plan.waiting_for:
            return None
        if plan.before and plan.before.pin.attempt == position.attempt:
            return None  # the lake has that very commit
        read = {**position.inputs, **position.references}
        if position.definition != node.definition or read.keys() != plan.looked_up.keys():
            return None
        if all(self._is_same(lake, i, read[i], pin) for i, pin in plan.looked_up.items()):
            return ComputedRows(there)
        return None

    def note(self, table_id: str, found: ComputedRows, lake: LakeLayout) -> None:
        """Note that the lake has taken over a table."""
        if here := head_as_found(lake.uri(table_id)):
            self._taken[table_id] = found.at, here.pin

    def _is_same(self, lake: LakeLayout, input_id: str, there: Pin, here: Pin) -> bool:
        """True if an input has certainly the same rows at both pins, by the attempts in its log."""
        at = head_as_found(lake.uri(input_id))
        if at is None or here.version < at.data_version or not there.attempt:
            return False
        if at.data_version <= there.version and is_past(at, there):
            return True
        if input_id not in self._taken:
            return False
        taken, pin = self._taken[input_id]
        is_in_it = taken.data_version <= there.version <= taken.version
        return pin == at.pin and taken.table == there.table and is_in_it


TAKEN_OVER = "take over"  # the strategy: rows that an environment has computed
Rebuilt = tuple[BatchReport, bool]  # the second: true if the feed can't be read across the change


def rebuild(
    spark: Spark,
    project: Project,
    table: Table,
    run: Run,
    *,
    as_landed: bool = False,
    computed: Computed | None = None,
) -> tuple[BatchReport, ...]:
    """Rebuild `table` by its current definition, and the views that can't follow.

    `as_landed`: a source's files are read again, even if they differ from those that were
    delivered. `computed`: an environment whose rows are taken over if they are the result.

    Raises UsageError for a table that is not stored or, with `as_landed`, not a source. Raises
    HistoryLost if what it was made from can't be read again. In both cases nothing was changed.
    """
    done = list(_rebuilt(spark, project, table, run, as_landed, computed))
    ended = {table.id} if any(ends_feed for _, ends_feed in done) else set()
    for view in _above(project, table):
        if _can_follow(spark, project, view, ended):
            continue
        mine = list(_nodes(spark, project, view, run, computed))
        ended |= {view.id} if any(ends_feed for _, ends_feed in mine) else set()
        done += mine
    return tuple(report for report, _ in done)


def check_asked(table: Table, *, as_landed: bool) -> None:
    """Raise UsageError for a table that is not stored or, with `as_landed`, not a source."""
    if not table.is_stored:
        raise UsageError(f"{table.id} is computed when it is read: there is nothing to rebuild")
    if as_landed and not table.is_ingested:
        raise UsageError(
            f"{table.id} is not a source: no interval of it was delivered as files",
            hint=f"`sluice rebuild {table.id}`, without --as-landed",
        )


def _rebuilt(
    spark: Spark,
    project: Project,
    table: Table,
    run: Run,
    as_landed: bool,
    computed: Computed | None,
) -> Iterator[Rebuilt]:
    check_asked(table, as_landed=as_landed)
    for table_id in (table.id, internal(table.id, DELIVERIES)):
        check_fit(table.id, head_as_found(layout(project).uri(table_id)))
    if table.is_delivered and (
        done := delivering(table).rebuild(spark, project, table, run, as_landed)
    ):
        yield done
    yield from _nodes(spark, project, table, run, computed)


def take_over(
    spark: Spark, project: Project, view: Table, run: Run, computed: Computed
) -> Iterator[BatchReport]:
    """Bring a view up to its inputs by the rows that an environment has computed from the same."""
    context = Context.of(project)
    for node in nodes_of(view, context.graph):
        if found := _found(context, node, computed):
            yield _rebuild(spark, context, node, run, found)[0]
            computed.note(node.id, found, context.lake)
        else:
            yield from advance_nodes(spark, project, [node], run)


def _found(context: Context, node: Node, computed: Computed | None) -> ComputedRows | None:
    if computed is None:
        return None
    plan = plan_rebuild(node, context.lake, context.graph)
    return computed.find(plan, context.lake)


def _nodes(
    spark: Spark, project: Project, table: Table, run: Run, computed: Computed | None
) -> Iterator[Rebuilt]:
    """Rebuild a table's nodes; if part of a chain changed, just those that can't follow."""
    context, ended = Context.of(project), set[str]()
    nodes = nodes_of(with_taken_columns(context.lake, table), context.graph)
    heads = {node.id: head_as_found(context.lake.uri(node.id)) for node in nodes}
    is_partly = any(is_of_another(heads[n.id], n.definition) for n in nodes) and bool(table.parts)
    for node in nodes:
        found = _found(context, node, computed)
        if not found and is_partly and _node_can_follow(spark, context, node, ended):
            for report in advance_nodes(spark, project, [node], run):
                yield report, False
            continue
        with naming_data_faults(node.id, node.operator.totals):
            report, ends_feed = _rebuild(spark, context, node, run, found)
        if computed and found:
            computed.note(node.id, found, context.lake)
        ended |= {node.id} if ends_feed else set()
        yield report, ends_feed


def _rebuild(
    spark: Spark, context: Context, node: Node, run: Run, found: ComputedRows | None
) -> Rebuilt:
    clock = Clock()
    with clock.phase("plan"):
        whole = plan_rebuild(node, context.lake, context.graph)
        extension = None if found else node.batch.extension(node, context.lake)
    if found:
        reason = "the environment has computed it from the same inputs"
        whole = replace(whole, strategy=TAKEN_OVER, reason=reason, size=found.size)
    planned = extension.plan if extension else _ready(whole)

    def work(session: SparkSession) -> Rebuilt:
        return _swap(session, context, node, whole, extension or found, run, clock)

    limits = context.limits.for_weight(node.operator.weight)
    why, size = too_large(rebuild_size(whole).bytes, limits.computed_here_bytes), planned.size.bytes
    (report, ends_feed), engine = spark.best(work, size, limits, clock=clock, why=why)
    return replace(report, engine=engine), ends_feed


def _swap(
    session: SparkSession,
    context: Context,
    node: Node,
    whole: BatchPlan,
    known: Extension | ComputedRows | None,
    run: Run,
    clock: Clock,
) -> Rebuilt:
    """Compute all rows, or only new parts of the definition if the rest of the table is valid.

    Expired windows come back when the horizon falls. The table lacks them, so it is then rebuilt
    whole.
    """
    extension = None if isinstance(known, ComputedRows) else known
    plan = extension.plan if extension else whole
    horizon = horizon_of(session, context, plan)
    if extension and horizon and horizon.has_fallen:
        plan, extension = _ready(whole), None
        horizon = horizon_of(session, context, plan)
    position = replace(next_position(plan, run, horizon), kind=REBUILD)
    batch = node.batch(context, session, plan, position.batch, horizon)
    if isinstance(known, ComputedRows):
        rows = known.rows(session, context.limits)
    else:
        rows = batch.add_extra_columns(
            batch.keep_living(extension.rows(batch)) if extension else batch.query()
        )
    target = Target(plan.uri, node.operator.key, plan.before, plan.size, node.partition_by)
    target = replace(target, whole=whole_size(context.lake, plan))
    done = swap(session, context, target, rows, position, clock, ignore=node.ignored)
    reason = plan.reason if known else ""
    return _report(plan, position.batch, done, clock, reason), done.ends_feed


def _ready(plan: BatchPlan) -> BatchPlan:
    if plan.waiting_for:
        raise UsageError(
            f"{plan.node.id} waits for {plan.waiting_for}",
            hint="`sluice run` brings its inputs up to date; rebuild it then",
        )
    return plan


def _above(project: Project, table: Table) -> list[Table]:
    """Return the built views that depend on a table, directly or not, inputs first."""
    graph, lake = project.graph, layout(project)
    above = (t for t in graph.tables.values() if table in graph.ancestors(t.id))
    return [t for t in above if t.is_view and head_as_found(lake.uri(t.id))]


def _can_follow(spark: Spark, project: Project, view: Table, ended: set[str]) -> bool:
    """True if the next batch of a view can continue from its position."""
    context = Context.of(project)
    heads = [(n, head_as_found(context.lake.uri(n.id))) for n in nodes_of(view, context.graph)]
    built = (node for node, at in heads if at and at.position)
    return all(_node_can_follow(spark, context, node, ended) for node in built)


def _node_can_follow(spark: Spark, context: Context, node: Node, ended: set[str]) -> bool:
    """True if the next batch of a node can continue from its position."""
    before = head_as_found(context.lake.uri(node.id))
    if before is None or before.position is None:
        return False
    if before.position.definition != node.definition or ended & before.position.inputs.keys():
        return False
    if _has_lost_history(context, node):
        return False
    looked_up = ended & before.position.references.keys()
    return not looked_up or _has_same_types(spark, context, node)


def _has_lost_history(context: Context, node: Node) -> bool:
    """True if the next changes can't be read: an earlier rebuild ended before this view's turn."""
    try:
        plan_batch(node, context.lake, context.graph)
    except ForeignCommit:
        return False  # in another table or in the view; a person must decide
    except HistoryLost:
        return True
    return False


def _has_same_types(spark: Spark, context: Context, node: Node) -> bool:
    """True if the table has the columns of its current query."""
    plan = plan_rebuild(node, context.lake, context.graph)

    def work(session: SparkSession) -> bool:
        assert plan.before is not None
        batch = node.batch(context, session, plan, 0)
        old = snapshot(session, plan.uri, plan.before.version, context.limits)
        return column_types(old) == column_types(batch.add_extra_columns(batch.query()))

    limits = context.limits.for_weight(node.operator.weight)
    size = rebuild_size(plan).bytes
    why = too_large(size, limits.computed_here_bytes)
    return spark.best(work, size, limits, why=why)[0]


def _report(
    plan: BatchPlan, batch: int, swapped: Swapped, clock: Clock, reason: str
) -> BatchReport:
    return replace(
        BatchReport.of(plan.node.id, plan.node.table.declared_kind, swapped.done, clock),
        batch=batch,
        strategy=plan.strategy,
        reason=reason,
        rows_in=plan.size.rows,
    )
