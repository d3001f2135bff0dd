"""Next batch of a table in words, as `sluice plan` shows it, and what changed definitions would do.

Nothing is run, and no Spark is started. A comparison with another configuration is one of meanings,
so formatting and names of files don't count. It reads the lake only to see which tables can be
extended, and changes nothing.
"""

import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, runtime_checkable

from sluice.declare.building import query_view, resolved_alone
from sluice.declare.environment_folders import of_base
from sluice.declare.meaning import Meaning, differences, fingerprint
from sluice.declare.project import Project, load, specs_in
from sluice.declare.registry import kind
from sluice.declare.spark_specs import is_spec
from sluice.declare.table import Table
from sluice.delta.log.continuity import meanings
from sluice.delta.log.files import FeedSize
from sluice.delta.log.opened import exists
from sluice.delta.log.position import REBUILD, head_as_found
from sluice.delta.places.lake_layout import LEFT_BEHIND, layout, leftovers
from sluice.engine.batch_plan import BatchPlan, Context
from sluice.engine.engine_choice import (
    engine_of_batch,
    engine_of_rebuild,
    touched_groups,
    why_not_here,
)
from sluice.engine.next_batch import NextBatch, with_marking
from sluice.engine.plan import Node, nodes_of, plan_batch, plan_rebuild
from sluice.errors import ConfigError, MissingDependency, SluiceError, UsageError
from sluice.language.names import declared_id
from sluice.operate.rebuild import redefined_parts
from sluice.spark.engine import reason_for_spark

LEFT = "maintain"  # what comes next for a table that a changed query has left behind
STOPPED = "stopped"  # what comes next for a table that can't go on


@dataclass(frozen=True)
class Part:
    """Table that keeps a part of a query, what it reads, and why a batch may cost more.

    `kept_for`: why it is stored: what batches of the parts over it read of it.
    """

    table: str
    kind: str
    reads: tuple[str, ...]
    kept_for: str
    columns: tuple[str, ...]
    caution: str = ""

    @classmethod
    def of(cls, part: Table, every: Iterable[Table]) -> "Part":
        """Return a part of all those of a query."""
        over = (f"{kind(one.kind).needs}, for {one.name}" for one in every if part.id in one.inputs)
        why = "; ".join(over) or "readers"
        return cls(part.id, part.kind, part.inputs, why, tuple(part.columns), part.spec.caution)


@runtime_checkable
class Planned(Protocol):
    """Kind whose next deliveries can be planned."""

    def deliveries_ahead(
        self, project: Project, table: Table, now: datetime, redefined: Mapping[str, str]
    ) -> Iterator[NextBatch]:
        """Yield its next deliveries at that time; nothing of the tables computed from them.

        `redefined`: what differs in stored tables that another definition filled.
        """


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
    return [Part.of(part, parts) for part in parts]


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
    engine = engine_of_batch(context, node, plan, large)
    size, read = plan.size, [touched.text] if touched else []
    size += touched.size if touched else FeedSize()
    return NextBatch(
        plan.node.id,
        plan.strategy,
        "; ".join([plan.reason, *read, *remarks, *reason_for_spark(engine)]),
        engine=engine,
        joins=joins,
        pending=plan.ranges or {i: (0, p.version) for i, p in plan.pins.items()},
        references={i: p.version for i, p in plan.references.items()},
        rows=size.rows,
        bytes=size.bytes,
        files=size.files,
        touched=touched.reads if touched else {},
    )


@contextmanager
def other_project(config: str, against: str) -> Iterator[Project]:
    """Yield the project that a folder declares, or that `config` declared as of a revision.

    Its lake is that of the settings, in no environment. A folder or spec of that name goes before
    a revision. Raises UsageError if there is neither, and
    ConfigError with the mistakes of the other configuration.
    """
    if Path(against).is_dir() or is_spec(Path(against)):
        yield load(against, environ=of_base())
        return
    with TemporaryDirectory(prefix="sluice-plan-") as folder:
        try:
            there = _extract(Path(config).resolve(), against, Path(folder))
            yield load(there, environ=of_base())
        except ConfigError as error:
            named = [mistake.replace(f"{folder}/", f"{against}:") for mistake in error.mistakes]
            raise ConfigError(named, hint=error.hint) from None


def _extract(config: Path, revision: str, folder: Path) -> Path:
    """Write the files of `config` as of a revision below a folder; return where they lie.

    Specs of spark-pipelines projects that it names come with their folders.
    """
    there = _extract_folder(config if config.is_dir() else config.parent, revision, folder)
    if config.is_file():
        _link_data(config.parent, there)
        return there / config.name
    for spec in specs_in(there):
        place = (config / spec).resolve().parent
        if not (there / spec).parent.exists():
            _link_data(place, _extract_folder(place, revision, folder))
    return there


def _link_data(project: Path, there: Path) -> None:
    """Link what a project's folder has besides the files of the revision, such as its tables."""
    for entry in project.iterdir():
        if not (there / entry.name).exists():
            (there / entry.name).symlink_to(entry)


def _extract_folder(config: Path, revision: str, folder: Path) -> Path:
    root = _git(config, "rev-parse", "--show-toplevel")
    if root is None:
        raise UsageError(
            f"{revision!r} is not a folder, and {config} is not in a git repository",
            hint="give --against a folder of configuration",
        )
    found = _git(config, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if found is None:
        raise UsageError(
            f"{revision!r} is neither a folder nor a revision of {_text(root)}",
            hint="name a branch, a tag or a commit; a branch of a remote may have to be fetched",
        )
    inside = config.relative_to(_text(root))
    files = _git(Path(_text(root)), "archive", "--format=tar", _text(found), "--", str(inside))
    if files is None:
        raise UsageError(f"{inside} is not in {revision!r}", hint="give --against a folder instead")
    with tarfile.open(fileobj=BytesIO(files)) as archive:
        archive.extractall(folder, filter="data")
    return folder / inside


def _git(folder: Path, *arguments: str) -> bytes | None:
    try:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        raise MissingDependency(
            "git, which finds the revision of --against, is not installed",
            hint="install git, or give --against a folder of configuration",
        ) from None
    return done.stdout if done.returncode == 0 else None


def _text(line: bytes) -> str:
    return line.decode().rstrip("\n")


NEW, GONE, EXTEND, UNTOUCHED = "new", "gone", "extend", "untouched"


@dataclass(frozen=True)
class Compared:
    """Outlook of one stored table: `next` is new, gone, rebuild, extend or untouched."""

    table: str
    next: str
    reason: str = ""


def compare(project: Project, other: Project) -> list[Compared]:
    """Return what would happen to each stored table of `other` if it became `project`.

    Inputs come first, and at the end the tables that only `other` declares.
    """
    tables = project.graph.tables.values()
    before = {n: m for t in other.graph.tables.values() for n, m in meanings(t).items()}
    moved, found = set[str](), list[Compared]()
    for table in tables:
        mine = list(_parts(project, table, before, moved))
        found += mine
        moved |= {table.id} if any(part.next != UNTOUCHED for part in mine) else set()
    left = before.keys() - {part.table for part in found}
    gone = (Compared(n, GONE, "no declaration names it any more") for n in before if n in left)
    return [*found, *gone]


def differing(project: Project, compared: list[Compared]) -> list[Table]:
    """Return the declared tables that are new or differ, inputs first."""
    names = {part.table for part in compared if part.next not in (UNTOUCHED, GONE)}
    return [t for t in project.graph.tables.values() if names & meanings(t).keys()]


def _parts(
    project: Project, table: Table, before: Mapping[str, Meaning], moved: set[str]
) -> Iterator[Compared]:
    """Yield the outlook of a table and of the internal ones behind it, in order."""
    above = [t.id for t in project.graph.ancestors(table.id) if t.id in moved]
    follows = f"follows {', '.join(above)}" if above else ""
    for name, now in meanings(table).items():
        was = before.get(name)
        if was is None:
            yield Compared(name, NEW)
        elif fingerprint(dict(was)) == fingerprint(dict(now)):
            yield Compared(name, UNTOUCHED, follows)
        else:
            yield Compared(name, _way(project, table, name, was), differences(was, now))


def _way(project: Project, table: Table, name: str, was: Meaning) -> str:
    """Return extend if the lake has the table by the other definition, and it can be extended."""
    lake = layout(project)
    at = head_as_found(lake.uri(name))
    if at is None or not at.position or at.position.definition != fingerprint(dict(was)):
        return REBUILD
    nodes = (node for node in nodes_of(table, project.graph) if node.id == name)
    return EXTEND if any(node.batch.extension(node, lake) for node in nodes) else REBUILD
