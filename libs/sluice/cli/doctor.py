"""Command `doctor`: examine the tables of a lake."""

from dataclasses import asdict, fields
from datetime import UTC, datetime

import click

from sluice.declare.project import load as load_project
from sluice.errors import ExitCode
from sluice.operate.upkeep.doctor import Finding, examine, strangers
from sluice.terminal.options import config_option, format_option
from sluice.terminal.output import Format, counted, write_rows


@click.command()
@click.argument("table", required=False)
@format_option
@config_option
def doctor(table: str | None, format_: Format, config: str) -> None:
    """Check TABLE (or every table): logs, checkpoints, files, positions, retention.

    Reports present and coming problems, and how to fix them. Changes nothing, starts no Spark. Exit
    5 if something blocks a batch or a reader.
    """
    project = load_project(config)
    chosen = [project.graph.table(table)] if table else list(project.graph.tables.values())
    findings = examine(project, chosen, datetime.now(UTC))
    findings += [] if table else strangers(project)
    if findings or format_ is not Format.TABLE:
        write_rows([asdict(one) for one in findings], [f.name for f in fields(Finding)], format_)
    else:
        click.echo(f"nothing is wrong in {counted(sum(t.is_stored for t in chosen), 'table')}")
    if any(finding.stops for finding in findings):
        raise click.exceptions.Exit(int(ExitCode.HISTORY))
