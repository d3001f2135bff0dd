"""Next batch of a table in words, as `sluice plan` shows it. Runs nothing, starts no Spark."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sluice.declare.building import resolved_alone
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import REBUILD, head, head_as_found
from sluice.delta.notes.intervals import deliveries
from sluice.delta.places.inventory import LEFT_BEHIND, leftovers
from sluice.delta.places.lake import layout
from sluice.delta.writing.marking import most_marked
from sluice.dimensions.load import engine_of_load
from sluice.dimensions.source import due, find
from sluice.engine.computing.batch_plan import BatchPlan
from sluice.engine.context import Context
from sluice.engine.planning.node import Node
from sluice.engine.planning.nodes import nodes_of
from sluice.engine.planning.plan import plan_batch, plan_rebuild
from sluice.engine.planning.rehearsal import engine_of_batch
from sluice.errors import SluiceError, UsageError
from sluice.language.internal import DELIVERIES, INTERVALS, internal
from sluice.language.interval import Interval, show
from sluice.language.spans import Span, spans
from sluice.operate.definitions.redefined import redefined_parts
from sluice.operate.outside import outside
from sluice.read.pending import Unread, unread
from sluice.read.status import missing
from sluice.sources.delivery import landed
from sluice.sources.ingest import engine_of_delivery
from sluice.sources.replacement import KEY
from sluice.spark.rehearsing import why
from sluice.spark.session import SPARK
from sluice.terminal.output import counted

LEFT = "maintain"  # what comes next for a table that a changed query has left behind
STOPPED = "stopped"  # what comes next for a table that can't go on
MARKED = "up to {} changed rows are marked; more, or rows in few files, rewrite these files"
WORDS = ("missing between them", "due", "with other files now", "without files now")


@dataclass(frozen=True)
class Step:
    """Next batch of one table.

    `pending`: input -> versions (from, to]. `rows`, `bytes`, `files`: sizes of what is read.
    `engine`: as the batch's report will name it, unless a value decides otherwise; of several
    deliveries, that of the largest. `joins`: dimension -> how it is joined to the facts. Of a
    source's intervals: `missing` between delivered ones, `due` since they ended, `changed` in their
    files, `gone` without files now.
    """

    table: str
    next: str
    reason: str = ""
    engine: str = ""
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


@dataclass(frozen=True)
class Part:
    """Table that keeps a part of a query, what it reads, and why a batch may cost more."""

    table: str
    kind: str
    reads: tuple[str, ...]
    columns: tuple[str, ...]
    caution: str = ""


def explain(project: Project, table: Table, now: datetime | None = None) -> list[Step]:
    """Return the next steps, at that time, of a table and of the internal tables behind it."""
    others = redefined_parts(project, table)
    steps = list(_delivery(project, table, now or datetime.now(UTC), others))
    if table.is_source and not exists(layout(project).uri(table.id)):
        return steps
    context = Context.of(project)
    for node in nodes_of(table, context.graph):
        if what := others.get(node.id):
            steps.append(_rebuild(context, node, what))
        else:
            plan = plan_batch(node, context.lake, context.graph, context.limits)
            step = _with_marking(project, _step(context, node, plan), node.operator.key)
            is_made = table.parts or (table.spec.caution and not step.pending)
            made = f"{_made(node.table)}: " if is_made and node.id == node.table.id else ""
            steps.append(replace(step, reason=f"{made}{step.reason}"))
    left = leftovers(project, [table])
    return [*steps, *(Step(name, LEFT, LEFT_BEHIND.format(table.id)) for name in left)]


def parts_of_query(project: Project, query: str, pipeline: str) -> list[Part]:
    """Return the tables that would keep a query, in order.

    Raises ConfigError if it can't be read or kept, UsageError for an unknown pipeline.
    """
    if pipeline not in project.pipelines:
        raise UsageError(
            f"unknown pipeline {pipeline!r}", hint=f"pipelines are: {', '.join(project.pipelines)}"
        )
    table = resolved_alone(project.graph, "sql", {"sql": query}, f"{pipeline}.query")
    parts = table.parts or (table,)
    return [Part(p.id, p.kind, p.inputs, tuple(p.columns), p.spec.caution) for p in parts]


def _made(part: Table) -> str:
    """Return how a part of a query is made, in words."""
    made = f"{part.kind} of {', '.join(part.inputs)}"
    return f"{made}, in which {part.spec.caution}" if part.spec.caution else made


def explain_all(
    project: Project, tables: Iterable[Table]
) -> tuple[list[Step], dict[str, SluiceError]]:
    """Return the next steps of tables, and the errors of those that can't go on."""
    steps, errors = list[Step](), dict[str, SluiceError]()
    for table in tables:
        try:
            steps += explain(project, table)
        except SluiceError as error:
            errors[table.id] = error
            steps.append(Step(table.id, STOPPED, error.message))
    return steps, errors


def _rebuild(context: Context, node: Node, what: str) -> Step:
    """Return the rebuild of a table that another definition filled."""
    extension = node.batch.extension(node, context.lake)
    plan = extension.plan if extension else None
    plan = plan or plan_rebuild(node, context.lake, context.graph, context.limits)
    reason = f"{what}; it waits for {plan.waiting_for}" if plan.waiting_for else what
    size = plan.size
    return Step(node.id, REBUILD, reason, SPARK, rows=size.rows, bytes=size.bytes, files=size.files)


def _delivery(
    project: Project, table: Table, now: datetime, others: Mapping[str, str]
) -> Iterator[Step]:
    if table.is_source:
        step = _with_marking(project, _ingest(project, table, now, others), KEY)
        yield _with_unread(step, unread(project, table)) if table.spec.is_followed else step
    elif table.is_dimension:
        step = _load(project, table, others.get(table.id, ""))
        yield _with_marking(project, step, table.key)


def _ingest(project: Project, table: Table, now: datetime, others: Mapping[str, str]) -> Step:
    known = deliveries(layout(project).uri(table.id, INTERVALS))
    zone = project.pipelines[table.pipeline].timezone
    last = f", the last one of {show(known[-1].interval.start, zone)}" if known else ""
    is_kept = known and nodes_of(table, project.graph)
    written = internal(table.id, DELIVERIES) if is_kept else table.id
    news = outside(project, table, now)
    moved = (news.due, news.changed, news.gone)
    found = (missing(project, table), *(spans(some, zone) for some in moved))
    said = (
        f"; {w}: {', '.join(map(str, some))}" for w, some in zip(WORDS, found, strict=True) if some
    )
    gaps, new, changed, gone = map(tuple, found)
    reason = f"{len(known)} delivered{last}{''.join(said)}"
    is_done = table.spec.is_by_interval and known and not any(found)
    way = "nothing" if is_done else "ingest"
    step = Step(written, way, reason, missing=gaps, due=new, changed=changed, gone=gone)
    if news.every and written not in others:
        step = _with_engine(project, table, step, sorted(news.every))
    if what := others.get(written):
        files = [file for d in known for file in landed(project, table, d.interval)[1]]
        step = replace(step, next=REBUILD, reason=f"{what}; {reason}", files=len(files))
        rows, size = sum(d.rows_read for d in known), sum(file.size for file in files)
        return replace(step, rows=rows, bytes=size)
    return step


def _with_engine(project: Project, table: Table, step: Step, some: Sequence[Interval]) -> Step:
    """Return the step with what is to be delivered, and the engine of the largest delivery."""
    landing = {interval: landed(project, table, interval)[1] for interval in some}
    sizes = {interval: sum(file.size for file in files) for interval, files in landing.items()}
    largest = max(sizes, key=sizes.__getitem__)
    engine = engine_of_delivery(project, table, largest)
    said = why(project.spark, engine, sizes[largest])
    return replace(
        step,
        reason="; ".join([step.reason, *said]),
        engine=engine,
        bytes=sum(sizes.values()),
        files=sum(map(len, landing.values())),
    )


def _with_unread(step: Step, parts: tuple[Unread, ...]) -> Step:
    """Return the step with the messages or versions that are there to be read."""
    count = sum(part.messages for part in parts)
    since = min((part.since for part in parts if part.since), default=None)
    waits = f" since {show(since)}" if since else ""
    what = parts[0].what if parts else "message"
    reason = f"{counted(count, what)} to read{waits}; {step.reason}"
    if step.next != "ingest":
        return replace(step, reason=reason)
    way = "ingest" if count or not parts else "nothing"
    return replace(step, next=way, reason=reason, rows=count if what == "message" else step.rows)


def _load(project: Project, table: Table, what: str) -> Step:
    try:
        found = find(project, table)
    except UsageError as error:
        return Step(table.id, "load", f"it would fail: {error.message}")
    before = head(found.uri)
    if not what and before and found.is_loaded(before):
        return Step(table.id, "nothing", "the files are those that were loaded")
    wanted = due(found, before, again=bool(what))
    reason = what or "; ".join(wanted.warnings) or "files are new or changed"
    way = REBUILD if what else "load"
    engine = SPARK if what else engine_of_load(project, found, wanted, before)
    said = () if what else why(project.spark, engine, wanted.bytes)
    reason, size = "; ".join([reason, *said]), wanted.bytes
    return Step(table.id, way, reason, engine, bytes=size, files=len(wanted.files))


def _with_marking(project: Project, step: Step, key: Sequence[str]) -> Step:
    """Return the step with how few changed rows leave a large table's files as they are."""
    at = head_as_found(layout(project).uri(step.table))
    if at is None or step.next == REBUILD or project.spark.commit == "spark":
        return step
    most = min(most_marked(at, key, project.limits), project.spark.small_changelog)
    return replace(step, reason=f"{step.reason}; {MARKED.format(f'{most:,}')}") if most else step


def _step(context: Context, node: Node, plan: BatchPlan) -> Step:
    if plan.waiting_for:
        return Step(plan.node.id, "wait", f"for {plan.waiting_for}")
    joins = node.batch.joins(context, plan)
    remarks = node.batch.remarks(context, plan)
    if not plan.is_pending:
        reason = "; ".join(["no input has new data", *remarks])
        return Step(plan.node.id, "nothing", reason, joins=joins)
    engine = engine_of_batch(context, node, plan)
    return Step(
        plan.node.id,
        plan.strategy,
        "; ".join([plan.reason, *remarks, *why(context.settings, engine, plan.size.bytes)]),
        engine=engine,
        joins=joins,
        pending=plan.ranges or {i: (0, p.version) for i, p in plan.pins.items()},
        references={i: p.version for i, p in plan.references.items()},
        rows=plan.size.rows,
        bytes=plan.size.bytes,
        files=plan.size.files,
    )
