"""Next batch of a table in words, as `sluice plan` shows it. Runs nothing, starts no Spark."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.intervals import deliveries
from sluice.delta.lake import exists, layout
from sluice.delta.position import head
from sluice.dimensions.source import due, find
from sluice.dimensions.spec import Dimension
from sluice.engine.context import Context
from sluice.engine.nodes import nodes_of
from sluice.engine.plan import BatchPlan, plan_batch
from sluice.errors import UsageError
from sluice.language.internal import DELIVERIES, INTERVALS, internal
from sluice.language.spans import Span, spans
from sluice.operate.outside import outside
from sluice.read.status import missing
from sluice.sources.spec import Source

WORDS = ("missing between them", "due", "with other files now", "without files now")


@dataclass(frozen=True)
class Step:
    """Next batch of one table.

    `pending`: input -> versions (from, to]. `rows`, `bytes`, `files`: sizes of what is read.
    `joins`: dimension -> how it is joined to the facts. Of a source's intervals: `missing` between
    delivered ones, `due` since they ended, `changed` in their files, `gone` without files now.
    """

    table: str
    next: str
    reason: str = ""
    pending: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    references: Mapping[str, int] = field(default_factory=dict)
    joins: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    bytes: int = 0
    files: int = 0
    missing: tuple[Span, ...] = ()
    due: tuple[Span, ...] = ()
    changed: tuple[Span, ...] = ()
    gone: tuple[Span, ...] = ()


def explain(project: Project, table: Table, now: datetime | None = None) -> list[Step]:
    """Return the next steps, at that time, of a table and of the internal tables behind it."""
    steps = list(_delivery(project, table, now or datetime.now(UTC)))
    if isinstance(table.spec, Source) and not exists(layout(project).uri(table.id)):
        return steps
    context = Context.of(project)
    plans = (
        plan_batch(n, context.lake, context.graph, context.limits)
        for n in nodes_of(table, context.graph)
    )
    return [*steps, *(_step(context, plan) for plan in plans)]


def _delivery(project: Project, table: Table, now: datetime) -> Iterator[Step]:
    if isinstance(table.spec, Source):
        known = deliveries(layout(project).uri(table.id, INTERVALS))
        last = f", the last one {known[-1].interval.start:%Y-%m-%d %H:%M}" if known else ""
        is_kept = known and nodes_of(table, project.graph)
        written = internal(table.id, DELIVERIES) if is_kept else table.id
        news = outside(project, table, now)
        found = (missing(project, table), *map(spans, (news.due, news.changed, news.gone)))
        said = (
            f"; {w}: {', '.join(map(str, some))}"
            for w, some in zip(WORDS, found, strict=True)
            if some
        )
        gaps, new, changed, gone = map(tuple, found)
        reason = f"{len(known)} delivered{last}{''.join(said)}"
        yield Step(written, "ingest", reason, missing=gaps, due=new, changed=changed, gone=gone)
    elif isinstance(table.spec, Dimension):
        yield _load(project, table)


def _load(project: Project, table: Table) -> Step:
    try:
        found = find(project, table)
    except UsageError as error:
        return Step(table.id, "load", f"it would fail: {error.message}")
    before = head(found.uri)
    if before and found.is_loaded(before):
        return Step(table.id, "nothing", "the files are those that were loaded")
    wanted = due(found, before)
    reason = "; ".join(wanted.warnings) or "files are new or changed"
    return Step(table.id, "load", reason, bytes=wanted.bytes, files=len(wanted.files))


def _step(context: Context, plan: BatchPlan) -> Step:
    if plan.waiting_for:
        return Step(plan.node.id, "wait", f"for {plan.waiting_for}")
    joins = plan.node.batch.joins(context, plan)
    remarks = plan.node.batch.remarks(context, plan)
    if not plan.is_pending:
        reason = "; ".join(["no input has new data", *remarks])
        return Step(plan.node.id, "nothing", reason, joins=joins)
    return Step(
        plan.node.id,
        plan.strategy,
        "; ".join([plan.reason, *remarks]),
        joins=joins,
        pending=plan.ranges or {i: (0, p.version) for i, p in plan.pins.items()},
        references={i: p.version for i, p in plan.references.items()},
        rows=plan.size.rows,
        bytes=plan.size.bytes,
        files=plan.size.files,
    )
