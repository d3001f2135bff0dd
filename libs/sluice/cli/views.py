"""Commands on existing tables: examine, plan, verify, sweep, rebuild and maintain them."""

from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import UTC, datetime

import click

from sluice.cli.progress import PreviewOptions, preview_option, summary
from sluice.cli.runs import do, name_run
from sluice.declare.project import Project
from sluice.declare.project import load as load_project
from sluice.declare.table import Table
from sluice.delta.log.continuity import meanings
from sluice.delta.log.opened import exists
from sluice.delta.places.lake_layout import layout
from sluice.engine import BatchReport
from sluice.engine.next_batch import NextBatch
from sluice.engine.plan import nodes_of
from sluice.errors import ExitCode, SluiceError, UsageError
from sluice.operate.delivering import resume
from sluice.operate.doctor import (
    Finding,
    Requirement,
    examine,
    examine_cluster,
    strangers,
    untested_versions,
)
from sluice.operate.explain import (
    Compared,
    Part,
    compare,
    differing,
    explain_all,
    other_project,
    parts_of_query,
)
from sluice.operate.maintain import Swept, Upkeep
from sluice.operate.maintain import maintain as maintain_tables
from sluice.operate.maintain import sweep as sweep_table
from sluice.operate.rebuild import bring, check_asked, redefined_parts, to_bring, to_rebuild
from sluice.operate.rebuild import rebuild as rebuild_table
from sluice.operate.run import marking_refusals, raise_all
from sluice.operate.verify import Verification
from sluice.operate.verify import verify as verify_table
from sluice.report.sweep import whole_table
from sluice.spark.session import Spark, open_session, with_spark
from sluice.terminal.options import config_option, empty_option, format_option, warn_of_left_out
from sluice.terminal.output import Format, pluralize, print_fitted, print_table, write_rows


@click.command()
@click.argument("table", required=False)
@click.option("--spark", "is_cluster", is_flag=True, help="Check the project's Spark instead.")
@format_option
@config_option
def doctor(table: str | None, is_cluster: bool, format_: Format, config: str) -> None:
    """Check TABLE (or every table): logs, checkpoints, files, positions, retention.

    Reports present and coming problems, and how to fix them. Changes nothing, starts no Spark. Exit
    5 if something blocks a batch or a reader. With --spark, check instead what the cluster or
    server of the project has: exit 2 if it lacks something.
    """
    project = load_project(config)
    if is_cluster:
        if table:
            raise UsageError("give either --spark or a TABLE")
        _examine_spark(project, format_)
        return
    chosen = [project.graph.table(table)] if table else list(project.graph.tables.values())
    findings = examine(project, chosen, datetime.now(UTC))
    findings += [] if table else [*strangers(project), *untested_versions()]
    if findings or format_ is not Format.TABLE:
        write_rows([asdict(one) for one in findings], [f.name for f in fields(Finding)], format_)
    else:
        click.echo(f"nothing is wrong in {pluralize(sum(t.is_stored for t in chosen), 'table')}")
    if any(finding.stops for finding in findings):
        raise click.exceptions.Exit(int(ExitCode.HISTORY))


def _examine_spark(project: Project, format_: Format) -> None:
    """Print each requirement of the project's Spark; exit 2 if one is not met."""
    session = open_session(project.spark)
    try:
        found = list(examine_cluster(project, session))
    finally:
        session.stop()
    write_rows([asdict(one) for one in found], [f.name for f in fields(Requirement)], format_)
    if any(one.repair for one in found):
        raise click.exceptions.Exit(int(ExitCode.CONFIGURATION))


@click.command()
@click.argument("table", required=False)
@click.option("--sql", metavar="QUERY", help="Show the tables that would keep a query instead.")
@click.option("--pipeline", help="Pipeline whose tables the query names; the only one by default.")
@click.option(
    "--against",
    metavar="REVISION|DIR",
    help="Show instead what changes from another configuration.",
)
@click.option(
    "--strict", is_flag=True, help="Exit 2 if a view is computed whole, or something is left out."
)
@preview_option
@format_option
@config_option
def plan(
    table: str | None,
    sql: str | None,
    pipeline: str | None,
    against: str | None,
    strict: bool,
    preview: PreviewOptions | None,
    format_: Format,
    config: str,
) -> None:
    """Show what the next batch of TABLE (or of every table) would read, and how. Runs nothing.

    With --against, show which tables a changed configuration would rebuild, extend or leave.
    """
    project = load_project(config)
    if sql is not None and (against or table):
        raise UsageError(f"give either --sql or {'--against' if against else 'a TABLE'}")
    if preview and not against:
        raise UsageError("--preview of a plan goes with --against; `sluice run --preview` runs it")
    if sql is not None:
        if not pipeline and len(project.pipelines) > 1:
            every = ", ".join(project.pipelines)
            raise UsageError(f"name one of the pipelines by --pipeline: {every}")
        pipeline = pipeline or next(iter(project.pipelines))
        _show_parts(parts_of_query(project, sql, pipeline), format_)
        return
    if against:
        _show_compared(project, table, config, against, preview, format_)
        return
    chosen = [project.graph.table(table)] if table else list(project.graph.tables.values())
    steps, errors = explain_all(project, chosen)
    if format_ is Format.TABLE:
        print_fitted(PLAN_COLUMNS, [_row(step) for step in steps])
    else:
        write_rows([asdict(step) for step in steps], [f.name for f in fields(NextBatch)], format_)
    raise_all(errors)
    warn_of_left_out(project.graph)
    cautions = [f"{t.id}: {t.spec.caution}" for t in chosen if t.spec.caution]
    for caution in cautions:
        click.echo(f"computed whole: {caution}", err=True)
    if strict and (cautions or project.graph.left_out):
        raise click.exceptions.Exit(int(ExitCode.CONFIGURATION))


@click.command()
@click.argument("views", nargs=-1)
@format_option
@config_option
def verify(views: tuple[str, ...], format_: Format, config: str) -> None:
    """Recompute VIEWS (or all) at the versions they reflect and compare. Exit 1 if one differs.

    A view that can't be recomputed, such as one that waits for a rebuild, stops no other.

    For every table, sources too, its change feed must add up to its rows, and the versions that it
    read must never go back. Each row read in a delivery must have been accepted or quarantined.
    """
    project = load_project(config)
    tables = [project.graph.table(name) for name in views] or _built_queries(project)

    verdicts, errors = list[Verification](), dict[str, SluiceError]()

    def work(spark: Spark) -> None:
        for table in tables:
            try:
                verdicts.extend(verify_table(spark, project, table))
            except SluiceError as error:
                errors[table.id] = error

    with_spark(project.spark, work)
    if verdicts or not errors:
        _show_verdicts(verdicts, format_)
    raise_all(errors)
    if not all(verdict.is_sound for verdict in verdicts):
        raise click.exceptions.Exit(int(ExitCode.DIFFERENCES))


@click.command()
@click.argument("tables", nargs=-1)
@format_option
@config_option
def sweep(tables: tuple[str, ...], format_: Format, config: str) -> None:
    """Check expectations over whole tables (`over: table`), of TABLES or of all.

    Results are kept for the report. Unmet expectations are shown, and change nothing.
    """
    project = load_project(config)
    chosen = [project.graph.table(t) for t in tables] or project.graph.tables.values()
    judged = [t for t in chosen if whole_table(t)]

    def work(spark: Spark) -> list[Swept]:
        return [sweep_table(spark, project, t, "sweep") for t in judged]

    found = with_spark(project.spark, work) if judged else []
    if format_ is not Format.TABLE:
        write_rows([asdict(swept) for swept in found], [f.name for f in fields(Swept)], format_)
        return
    for unmet in (unmet for swept in found for unmet in swept.unmet):
        click.echo(unmet)
    looked_at = pluralize(sum(swept.expectations for swept in found), "expectation")
    click.echo(f"{looked_at} of whole tables checked, {sum(len(s.unmet) for s in found)} not met")


@click.command()
@click.argument("table", required=False)
@click.option(
    "--changed", is_flag=True, help="Rebuild every table whose definition has changed, in order."
)
@click.option(
    "--as-landed",
    is_flag=True,
    help="Also read a source's corrected files; a topic or a Delta table, as it is now.",
)
@click.option(
    "--from",
    "start",
    type=click.Choice(["earliest", "latest"]),
    help="Keep the rows of a topic or a Delta table, and continue there; the gap is noted.",
)
@empty_option
@preview_option
@format_option
@config_option
def rebuild(
    table: str | None,
    changed: bool,
    as_landed: bool,
    start: str | None,
    allow_empty: bool,
    preview: PreviewOptions | None,
    format_: Format,
    config: str,
) -> None:
    """Compute TABLE again by its current definition, and commit the difference once."""
    if changed == bool(table):
        raise UsageError("name one TABLE, or give --changed, which finds the tables itself")
    if start and (changed or as_landed):
        raise UsageError("--from keeps the rows of one table: leave out --changed and --as-landed")
    project = load_project(config)
    found = to_bring if project.environment else to_rebuild
    chosen = found(project) if changed else [project.graph.table(str(table))]
    if not changed:
        check_asked(chosen[0], as_landed=as_landed)
    run = name_run("rebuild", allow_empty=allow_empty)

    def step(spark: Spark, project: Project, table: Table) -> Iterable[BatchReport]:
        if changed and project.environment and not as_landed:
            return bring(spark, project, table, run)
        if changed and not redefined_parts(project, table):
            return ()  # an input has changed, not its own definition
        with marking_refusals():
            if start:
                return (resume(project, table, run, latest=start == "latest"),)
            landed = as_landed and table.is_ingested
            return rebuild_table(spark, project, table, run, as_landed=landed)

    if chosen:
        do(project, chosen, run, step, format_, preview=preview)
    elif format_ is Format.TABLE:
        click.echo("every table was built by the configuration's definition")
    else:
        summary([], format_)


@click.command()
@click.argument("tables", nargs=-1)
@format_option
@config_option
def maintain(tables: tuple[str, ...], format_: Format, config: str) -> None:
    """Compact, seal and vacuum TABLES (or all). Changes no row."""
    project = load_project(config)
    chosen = [project.graph.table(t) for t in tables] or list(project.graph.tables.values())
    upkeep = with_spark(project.spark, lambda spark: maintain_tables(spark, project, chosen))
    done = [asdict(one) for one in upkeep]
    if done or format_ is not Format.TABLE:
        write_rows(done, [f.name for f in fields(Upkeep)], format_)
    else:
        click.echo("nothing is due in any table")


def _show_compared(
    project: Project,
    table: str | None,
    config: str,
    against: str,
    preview: PreviewOptions | None,
    format_: Format,
) -> None:
    """Show what would change in the other configuration's tables, or how their rows would differ.

    People see both.
    """
    with other_project(config, against) as other:
        compared = compare(project, other)
    if table:
        mine = meanings(project.graph.table(table))
        compared = [part for part in compared if part.table in mine]
    if format_ is Format.TABLE:
        rows = [(part.table, part.next, part.reason) for part in compared]
        print_table(("table", "next", "because"), rows)
    elif not preview:
        write_rows([asdict(part) for part in compared], [f.name for f in fields(Compared)], format_)
    if preview and (chosen := differing(project, compared)):
        run = name_run("rebuild")
        do(project, chosen, run, lambda s, p, t: bring(s, p, t, run), format_, preview=preview)


def _show_parts(parts: list[Part], format_: Format) -> None:
    if format_ is Format.TABLE:
        kinds = [f"{p.kind}: {p.caution}" if p.caution else p.kind for p in parts]
        rows = [
            (p.table, kind, ", ".join(p.reads), p.kept_for, ", ".join(p.columns))
            for p, kind in zip(parts, kinds, strict=True)
        ]
        print_table(("table", "kind", "reads", "kept for", "columns"), rows)
    else:
        write_rows([asdict(part) for part in parts], [f.name for f in fields(Part)], format_)


PLAN_COLUMNS = ("table", "next", "because", "rows", "bytes", "engine", "pending")
VERDICT_COLUMNS = ("table", "version", "rows", "verdict", "missing", "extra", "different")


def _row(step: NextBatch) -> tuple[object, ...]:
    pending = ", ".join(f"{i} ({a}, {b}]" for i, (a, b) in step.pending.items())
    engine = step.engine.partition(": ")[0]
    sizes = (step.rows, step.bytes or None)
    read = [f"up to {n:,}" if n and step.is_most else n for n in sizes]
    return (step.table, step.next, step.reason, *read, engine, pending)


def _built_queries(project: Project) -> list[Table]:
    """Return the tables that have been built. Raises UsageError if none is a query over others."""
    lake = layout(project)
    stored = (t for t in project.graph.tables.values() if t.is_stored)
    found = [t for t in stored if exists(lake.uri(t.id))]
    if not any(nodes_of(t, project.graph) for t in found):
        raise UsageError(
            f"there is nothing to verify: no view has been built in {lake.root}",
            hint="`sluice run PIPELINE` builds them; is this the lake that you mean?",
        )
    return found


def _show_verdicts(verdicts: Iterable[Verification], format_: Format) -> None:
    found = list(verdicts)
    if format_ is not Format.TABLE:
        write_rows([asdict(v) for v in found], [f.name for f in fields(Verification)], format_)
        return
    rows = []
    for v in found:
        verdict = "DIFFERS" if not v.is_equal else "equal" if v.is_sound else "FAULTY"
        rows.append((v.table, v.version, v.rows, verdict, v.missing, v.extra, v.different))
    print_table(VERDICT_COLUMNS, rows)
    for v in found:
        for fault in v.faults:
            click.echo(f"{v.table}: {fault}")
        if not v.is_equal:
            click.echo(f"{v.table}: rows that differ from the recompute")
            write_rows(v.differences, list(v.differences[0]), Format.TABLE)
