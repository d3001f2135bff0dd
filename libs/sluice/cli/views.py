"""Commands on tables as they stand: plan, verify, rebuild and maintain them."""

from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import UTC, datetime

import click

from sluice.cli.runs import do, empty_option
from sluice.declare.project import Project
from sluice.declare.project import load as load_project
from sluice.declare.table import Table
from sluice.delta.lake import exists, layout
from sluice.engine.advance import Run
from sluice.engine.nodes import nodes_of
from sluice.engine.report import BatchReport
from sluice.errors import ExitCode, UsageError
from sluice.operate.explain import Step, explain
from sluice.operate.maintain import Upkeep
from sluice.operate.maintain import maintain as maintain_tables
from sluice.operate.rebuild import check_asked
from sluice.operate.rebuild import rebuild as rebuild_table
from sluice.operate.verify import Verdict
from sluice.operate.verify import verify as verify_table
from sluice.spark.session import Spark, with_spark
from sluice.terminal.options import config_option, format_option
from sluice.terminal.output import Format, print_table, write_rows


@click.command()
@click.argument("table", required=False)
@format_option
@config_option
def plan(table: str | None, format_: Format, config: str) -> None:
    """Show what the next batch of TABLE (or of every table) would read, and how. Runs nothing."""
    project = load_project(config)
    chosen = [project.graph.table(table)] if table else list(project.graph.tables.values())
    steps = [step for t in chosen for step in explain(project, t)]
    if format_ is Format.TABLE:
        print_table(PLAN_COLUMNS, [_row(step) for step in steps])
        return
    write_rows([asdict(step) for step in steps], [f.name for f in fields(Step)], format_)


@click.command()
@click.argument("views", nargs=-1)
@format_option
@config_option
def verify(views: tuple[str, ...], format_: Format, config: str) -> None:
    """Recompute VIEWS (or all) at the versions they reflect and compare. Exit 1 if one differs.

    Of every table, sources too: its change feed adds up to its rows, the versions that it read
    never went back, and what was read of each delivery was accepted or set aside.
    """
    project = load_project(config)
    tables = [project.graph.table(name) for name in views] or _computed(project)

    def work(spark: Spark) -> list[Verdict]:
        return [verdict for t in tables for verdict in verify_table(spark, project, t)]

    verdicts = with_spark(project.spark, work)
    _show_verdicts(verdicts, format_)
    if not all(verdict.is_sound for verdict in verdicts):
        raise click.exceptions.Exit(int(ExitCode.DIFFERENCES))


@click.command()
@click.argument("table")
@click.option("--as-landed", is_flag=True, help="Take a source's files that were corrected since.")
@empty_option
@format_option
@config_option
def rebuild(table: str, as_landed: bool, allow_empty: bool, format_: Format, config: str) -> None:
    """Make TABLE anew by its definition of today, in one commit of what differs."""
    project = load_project(config)
    chosen = project.graph.table(table)
    check_asked(chosen, as_landed=as_landed)
    run = Run(f"rebuild-{datetime.now(UTC):%Y%m%dT%H%M%S}", allow_empty=allow_empty)

    def step(spark: Spark, table: Table) -> Iterable[BatchReport]:
        return rebuild_table(spark, project, table, run, as_landed=as_landed)

    do(project, [chosen], run, step, format_)


@click.command()
@click.argument("tables", nargs=-1)
@format_option
@config_option
def maintain(tables: tuple[str, ...], format_: Format, config: str) -> None:
    """Compact, seal, expire and vacuum TABLES (or all). Changes no row that is visible."""
    project = load_project(config)
    chosen = [project.graph.table(t) for t in tables] or list(project.graph.tables.values())
    upkeep = with_spark(project.spark, lambda spark: maintain_tables(spark, project, chosen))
    done = [asdict(one) for one in upkeep]
    if done or format_ is not Format.TABLE:
        write_rows(done, [f.name for f in fields(Upkeep)], format_)
    else:
        click.echo("nothing is due in any table")


PLAN_COLUMNS = ("table", "next", "pending", "rows", "bytes", "because")
VERDICT_COLUMNS = ("table", "version", "rows", "verdict", "missing", "extra", "different")


def _row(step: Step) -> tuple[object, ...]:
    pending = ", ".join(f"{i} ({a}, {b}]" for i, (a, b) in step.pending.items())
    return (step.table, step.next, pending, step.rows, step.bytes or None, step.reason)


def _computed(project: Project) -> list[Table]:
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


def _show_verdicts(verdicts: Iterable[Verdict], format_: Format) -> None:
    found = list(verdicts)
    if format_ is not Format.TABLE:
        write_rows([asdict(v) for v in found], [f.name for f in fields(Verdict)], format_)
        return
    print_table(VERDICT_COLUMNS, [_verdict_row(v) for v in found])
    for verdict in found:
        for fault in verdict.faults:
            click.echo(f"{verdict.table}: {fault}")
        if not verdict.is_equal:
            click.echo(f"{verdict.table}: rows that differ from the recompute")
            columns = list(verdict.differences[0])
            write_rows(verdict.differences, columns, Format.TABLE)


def _verdict_row(v: Verdict) -> tuple[object, ...]:
    verdict = ("equal" if v.is_sound else "FAULTY") if v.is_equal else "DIFFERS"
    return (v.table, v.version, v.rows, verdict, v.missing, v.extra, v.different)
