"""Next batch of a table in words, as `sluice plan` shows it. Runs nothing, starts no Spark."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

from sluice.declare.building import query_view, resolved_alone
from sluice.declare.project import Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.delta.log.files import FeedSize
from sluice.delta.log.opened import exists
from sluice.delta.log.position import REBUILD
from sluice.delta.places.lake_layout import LEFT_BEHIND, layout, leftovers
from sluice.engine.batch_plan import BatchPlan, Context
from sluice.engine.next_batch import (
    NextBatch,
    engine_of_batch,
    engine_of_rebuild,
    touched_groups,
    why_not_here,
    with_marking,
)
from sluice.engine.plan import Node, nodes_of, plan_batch, plan_rebuild
from sluice.errors import SluiceError, UsageError
from sluice.language.names import declared_id
from sluice.operate.rebuild import redefined_parts
from sluice.spark.session import reason_for_spark

LEFT = "maintain"  # what comes next for a table that a changed query has left behind
STOPPED = "stopped"  # what comes next for a table that can't go on


@dataclass(frozen=True)
class Part:
    """Table that keeps a part of a query, what it reads, and why a batch may cost more."""

    table: str
    kind: str
    reads: tuple[str, ...]
    columns: tuple[str, ...]
    caution: str = ""


@runtime_checkable
class Planned(Protocol):
    """Kind whose next deliveries can be planned."""

    def deliveries_ahead(
        self, project: Project, table: Table, now: datetime, redefined: Mapping[str, str]
    ) -> Iterator[NextBatch]:
        """Yield its next deliveries at that time; nothing of the tables computed from them.

        `redefined`: what differs in stored tables that another definition filled.
        """
        ...


def explain(project: Project, table: Table, now: datetime | None = None) -> list[NextBatch]:
    """Return the next steps, at that time, of a table and of the internal tables behind it."""
    others = redefined_parts(project, table)
    steps = list(_deliveries(project, table, now or datetime.now(UTC), others))
    if table.is_delivered and not exists(layout(project).uri(table.id)):
        return steps
    context = Context.of(project)
    for node in nodes_of(table, context.graph):
        if what := others.get(node.id):
            steps.append(_rebuild(project, context, node, what))
        else:
            plan = plan_batch(node, context.lake, context.graph)
            step = with_marking(context, _step(context, node, plan), node.operator.key)
            is_made = table.parts or (table.spec.caution and not step.pending)
            made = ""
            if is_made and node.id == node.table.id:
                part = node.table
                caution = f", in which {part.spec.caution}" if part.spec.caution else ""
                made = f"{part.kind} of {', '.join(part.inputs)}{caution}: "
            steps.append(replace(step, reason=f"{made}{step.reason}"))
    left = leftovers(project, [table])
    return [*steps, *(NextBatch(name, LEFT, LEFT_BEHIND.format(table.id)) for name in left)]


def _deliveries(
    project: Project, table: Table, now: datetime, redefined: Mapping[str, str]
) -> Iterator[NextBatch]:
    planned = kind(table.kind)
    if not isinstance(planned, Planned):
        return iter(())
    return planned.deliveries_ahead(project, table, now, redefined)


def parts_of_query(project: Project, query: str, pipeline: str) -> list[Part]:
    """Return the tables that would keep a query, in order.

    Raises ConfigError if it can't be read or kept, UsageError for an unknown pipeline.
    """
    if pipeline not in project.pipelines:
        raise UsageError(
            f"unknown pipeline {pipeline!r}", hint=f"pipelines are: {', '.join(project.pipelines)}"
        )
    table = resolved_alone(project.graph, query_view(query), f"{pipeline}.query")
    parts = table.parts or (table,)
    return [Part(p.id, p.kind, p.inputs, tuple(p.columns), p.spec.caution) for p in parts]


def explain_all(
    project: Project, tables: Iterable[Table]
) -> tuple[list[NextBatch], dict[str, SluiceError]]:
    """Return the next steps of tables, and the errors of those that can't go on."""
    steps, errors = list[NextBatch](), dict[str, SluiceError]()
    for table in tables:
        try:
            steps += explain(project, table)
        except SluiceError as error:
            errors[table.id] = error
            steps.append(NextBatch(table.id, STOPPED, error.message))
    return steps, errors


def _rebuild(project: Project, context: Context, node: Node, what: str) -> NextBatch:
    """Return the rebuild of a table that another definition filled.

    Its engine follows from its size alone while an input lacks its own rebuild, and so columns.
    """
    extension = node.batch.extension(node, context.lake)
    whole = plan_rebuild(node, context.lake, context.graph)
    plan = extension.plan if extension else whole
    if plan.waiting_for:
        return NextBatch(node.id, REBUILD, f"{what}; it waits for {plan.waiting_for}")
    made_of = {i: project.graph.table(declared_id(i)) for i in whole.looked_up}
    is_known = not any(i in redefined_parts(project, table) for i, table in made_of.items())
    engine, size = engine_of_rebuild(context, node, whole, is_known=is_known), plan.size
    return NextBatch(
        node.id, REBUILD, what, engine, rows=size.rows, bytes=size.bytes, files=size.files
    )


def _step(context: Context, node: Node, plan: BatchPlan) -> NextBatch:
    if plan.waiting_for:
        return NextBatch(plan.node.id, "wait", f"for {plan.waiting_for}")
    joins = node.batch.joins(context, plan)
    remarks = node.batch.remarks(context, plan)
    if not plan.is_pending:
        reason = "; ".join(["no input has new data", *remarks])
        return NextBatch(plan.node.id, "nothing", reason, joins=joins)
    touched = touched_groups(context, node, plan)
    large = why_not_here(context.limits.for_weight(node.operator.weight), plan, touched)
    engine = engine_of_batch(context, node, plan, is_small=not large)
    size, read = plan.size, [touched.text] if touched else []
    size += touched.size if touched else FeedSize()
    by_spark = reason_for_spark(context.settings, engine, plan.size.bytes, large)
    return NextBatch(
        plan.node.id,
        plan.strategy,
        "; ".join([plan.reason, *read, *remarks, *by_spark]),
        engine=engine,
        joins=joins,
        pending=plan.ranges or {i: (0, p.version) for i, p in plan.pins.items()},
        references={i: p.version for i, p in plan.references.items()},
        rows=size.rows,
        bytes=size.bytes,
        files=size.files,
        touched=touched.reads if touched else {},
    )
