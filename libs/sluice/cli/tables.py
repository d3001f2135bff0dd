"""Commands that remove or rename a table of the lake."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

import click

from sluice.declare.graph import UnknownTable
from sluice.declare.project import Project, load
from sluice.declare.table import Table
from sluice.errors import UsageError
from sluice.operate.definitions.drop import Dropped, found
from sluice.operate.definitions.drop import drop as drop_table
from sluice.operate.definitions.rename import REBUILD, Renamed
from sluice.operate.definitions.rename import rename as rename_table
from sluice.terminal.options import config_option, format_option
from sluice.terminal.output import Format, print_table, write_rows


@click.command()
@click.argument("table")
@click.option("--now", is_flag=True, help="Delete the files at once, instead of after a week.")
@format_option
@config_option
def drop(table: str, now: bool, format_: Format, config: str) -> None:
    """Remove TABLE from the lake, with its internal tables.

    Refused while other tables depend on it; they are listed. The files are kept for a week.
    """
    project = load(config)
    table_id = found(project, table)
    done = drop_table(project, table_id, datetime.now(UTC), at_once=now)
    _show([asdict(one) for one in done], Dropped, format_)
    if table_id in project.graph.tables:
        click.echo(f"warning: {table_id} is still declared: the next run builds it again", err=True)


@click.command()
@click.argument("table")
@click.argument("new")
@format_option
@config_option
def rename(table: str, new: str, format_: Format, config: str) -> None:
    """Give the stored TABLE the name NEW, which the configuration has for it already.

    Its history stays, and tables that read it continue from their positions.
    """
    project = load(config)
    done = rename_table(project, found(project, table), _named(project, table, new))
    _show([asdict(one) for one in done], Renamed, format_)
    for one in done:
        if one.what == REBUILD:
            click.echo(
                f"warning: {one.table} differs in more than this name: run `sluice plan` to see "
                "what, and `sluice rebuild --changed`",
                err=True,
            )


def _named(project: Project, table: str, new: str) -> Table:
    """Return the declared table with the new name. Raises UsageError if there is none yet."""
    try:
        return project.graph.table(new)
    except UnknownTable as error:
        raise UsageError(
            f"unknown table {new!r}: the configuration does not declare it yet",
            hint=f"write it there first, in place of {table!r}, where that is declared and "
            "wherever it is named; then run this again",
        ) from error


def _show(rows: Sequence[dict[str, Any]], model: type, format_: Format) -> None:
    columns = [field.name for field in fields(model)]
    if format_ is Format.TABLE:
        print_table([c.replace("_", " ") for c in columns], [list(row.values()) for row in rows])
    else:
        write_rows(rows, columns, format_)
