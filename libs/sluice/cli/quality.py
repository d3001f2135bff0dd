"""The commands about data quality."""

from datetime import UTC, datetime
from uuid import uuid4

import click

from sluice.cli.options import config_option, format_option
from sluice.cli.output import Format
from sluice.cli.progress import summary
from sluice.runtime.batch import Run
from sluice.runtime.replay import replay as replay_intervals
from sluice.runtime.replay import to_replay
from sluice.runtime.session import with_spark
from sluice.specs.interval import parse_time
from sluice.specs.project import load


@click.command()
@click.argument("source")
@click.option("--start", metavar="T", help="Only intervals from here on.")
@click.option("--end", metavar="T", help="Only intervals that end by then.")
@format_option
@config_option
def replay(source: str, start: str | None, end: str | None, format_: Format, config: str) -> None:
    """Read the intervals of SOURCE again that have rows in quarantine, after a fix.

    SOURCE may be a dimension. Views follow at their next advance.
    """
    project = load(config)
    table = project.graph.table(source)
    first, last = (parse_time(t) if t else None for t in (start, end))
    intervals = to_replay(project, table, first, last)
    run = Run(f"replay-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:6]}")
    reports = with_spark(
        project.spark, lambda spark: list(replay_intervals(spark, project, table, intervals, run))
    )
    summary(reports, format_)
    if format_ is Format.TABLE and not intervals:
        click.echo(f"{table.id} has no rows in quarantine there")
