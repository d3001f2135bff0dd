"""Command `changes`: show a table's changelog without Spark."""

import click

from sluice.read.changelog import Changelog
from sluice.read.conditions.values import check_columns
from sluice.read.lake import Lake
from sluice.terminal.fitting import write_found
from sluice.terminal.options import choose_once, columns_option, format_option, lake_options
from sluice.terminal.output import Format, write_json


@click.command()
@click.argument("table")
@click.option("--from-version", type=int, help="The first version, included.")
@click.option("--to-version", type=int, callback=choose_once, help="The last version, included.")
@click.option("--run", metavar="ID", help="Only what this run changed.")
@click.option(
    "--as",
    "as_",
    type=click.Choice(["rows", "map"]),
    default="rows",
    show_default=True,
    help="Each changed row, or what was touched as a whole, such as a partition.",
)
@columns_option
@format_option
@lake_options
def changes(
    table: str,
    from_version: int | None,
    to_version: int | None,
    run: str | None,
    as_: str,
    columns: list[str] | None,
    format_: Format,
    lake: Lake,
) -> None:
    """Show what changed in TABLE, version by version."""
    changelog = Changelog.open(lake, table, to_version)
    if as_ == "rows":
        rows = changelog.rows(from_version=from_version, run=run, columns=columns)
        write_found(rows, rows.schema.names, format_, changelog.leading, columns)
        return
    maps = changelog.maps(from_version=from_version, run=run)
    check_columns(table, columns, maps.columns)
    if format_ is Format.JSON:
        for whole in maps:
            write_json(whole.as_json(columns))
        return
    found = (row for whole in maps for row in whole.rows())
    write_found(found, maps.columns, format_, maps.leading, columns)
