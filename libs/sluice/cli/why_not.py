"""Command `why-not`: show why a row is absent from a table."""

from typing import Any

import click
import pyarrow as pa

from sluice.cli.why import SHOWN, row_options
from sluice.errors import ExitCode
from sluice.operate.lineage.reasons import AbsenceReason
from sluice.operate.lineage.why_not import WhyNot, reasons_of
from sluice.read.changelog import Changelog
from sluice.read.lake import Lake
from sluice.read.naming import Given
from sluice.terminal.options import format_option, lake_options, version_option
from sluice.terminal.output import Format, counted, print_table, write_json, write_rows

COLUMNS = ("table", "why", "what", "count")


@click.command("why-not")
@click.argument("table")
@row_options
@click.option(
    "--rows",
    type=click.IntRange(min=0),
    default=SHOWN,
    show_default=True,
    metavar="N",
    help="Rows to show for each reason.",
)
@version_option
@format_option
@lake_options
def why_not(
    table: str, given: Given, rows: int, version: int | None, format_: Format, lake: Lake
) -> None:
    """Show why TABLE has no row with that KEY, from the table down to its files.

    With --partition alone, rows are given by any columns. Exit 1 if the row is there.
    """
    found = reasons_of(Changelog.open(lake, table, version), given)
    if found is None:
        click.echo(f"{table} has that row; `sluice why` explains it", err=True)
        raise click.exceptions.Exit(ExitCode.DIFFERENCES)
    if format_ is Format.JSON:
        reasons = [_reason(reason, rows) for reason in found.reasons]
        write_json({"table": found.table, "version": found.version, "reasons": reasons})
    elif format_ is Format.CSV:
        write_rows([_reason(reason, 0) for reason in found.reasons], COLUMNS, format_)
    else:
        _print(found, rows)


def _reason(reason: AbsenceReason, most: int) -> dict[str, Any]:
    """Return a reason with its first rows, for programs."""
    return {
        "table": reason.table,
        "why": reason.why,
        "what": reason.what,
        "count": reason.rows.num_rows if reason.rows else None,
        "rows": reason.rows.slice(0, most).to_pylist() if reason.rows else [],
        "others": reason.others.slice(0, most).to_pylist() if reason.others else [],
    }


def _print(found: WhyNot, most: int) -> None:
    click.echo(f"{found.table}, version {found.version}, has no such row")
    for reason in found.reasons:
        click.echo(f"{reason.table}: {reason.why}, {reason.what}")
        _table(reason.rows, most)
        if reason.others is not None:
            click.echo("because of")
            _table(reason.others, most)


def _table(rows: pa.Table | None, most: int) -> None:
    """Print the first rows, and how many there are if these are not all."""
    if rows is None or not rows.num_rows or not most:
        return
    some = rows.slice(0, most)
    title = counted(rows.num_rows, "row") if rows.num_rows > most else ""
    print_table(rows.column_names, zip(*some.to_pydict().values(), strict=True), title)
