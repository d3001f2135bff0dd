"""Commands on data quality."""

from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import UTC, datetime
from uuid import uuid4

import click

from sluice.cli.runs import do
from sluice.cli.work_options import empty_option
from sluice.declare.project import Project, load
from sluice.declare.table import Table
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.language.interval import parse_time
from sluice.operate.delivering import replay as replay_intervals
from sluice.operate.delivering import to_replay
from sluice.operate.maintain import Swept
from sluice.operate.maintain import sweep as sweep_table
from sluice.report.sweep import whole_table
from sluice.spark.session import Spark, with_spark
from sluice.terminal.options import config_option, format_option
from sluice.terminal.output import Format, counted, write_rows


@click.command()
@click.argument("source")
@click.option("--start", metavar="T", help="Only intervals from here on.")
@click.option("--end", metavar="T", help="Only intervals that end by then.")
@empty_option
@format_option
@config_option
def replay(
    source: str,
    start: str | None,
    end: str | None,
    allow_empty: bool,
    format_: Format,
    config: str,
) -> None:
    """Read the intervals of SOURCE with rows in quarantine again, after a fix.

    SOURCE may be a dimension. Views follow at their next advance.
    """
    project = load(config)
    table = project.graph.table(source)
    zone = project.pipelines[table.pipeline].timezone
    first, last = (parse_time(t, zone) if t else None for t in (start, end))
    intervals = to_replay(project, table, first, last)
    run = Run(
        f"replay-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:6]}", allow_empty=allow_empty
    )

    def step(spark: Spark, project: Project, table: Table) -> Iterable[BatchReport]:
        return replay_intervals(spark, project, table, intervals, run)

    do(project, [table], run, step, format_)
    if format_ is Format.TABLE and not intervals:
        click.echo(f"{table.id} has no rows in quarantine there")


@click.command()
@click.argument("tables", nargs=-1)
@format_option
@config_option
def sweep(tables: tuple[str, ...], format_: Format, config: str) -> None:
    """Check expectations over whole tables (`over: table`), of TABLES or of all.

    Results are kept for the report. Unmet expectations are shown, and change nothing.
    """
    project = load(config)
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
    looked_at = counted(sum(swept.expectations for swept in found), "expectation")
    click.echo(f"{looked_at} of whole tables checked, {sum(len(s.unmet) for s in found)} not met")
