"""Commands that read: none starts Spark, and each read is pinned to one version of its table."""

from typing import TYPE_CHECKING, Any

import click

from sluice.errors import ExitCode
from sluice.terminal.options import (
    choose_once,
    column_value,
    columns_option,
    format_option,
    key_from_option,
    key_to_option,
    lake_options,
    limit_option,
    named_key_option,
    page_options,
    version_option,
    where_option,
    write_page,
)
from sluice.terminal.output import Format, arrange, write_found, write_json, write_record

if TYPE_CHECKING:
    from sluice.read.lake import Lake


@click.command()
@click.argument("table")
@where_option
@columns_option
@limit_option
@version_option
@format_option
@lake_options
def read(
    table: str,
    where: str | None,
    columns: list[str] | None,
    limit: int | None,
    version: int | None,
    format_: Format,
    lake: "Lake",
) -> None:
    """Show the rows of TABLE as they are stored (`range` keeps key order)."""
    opened = lake.table(table, version=version)
    rows = opened.read(where=where, limit=limit, columns=columns)
    write_found(rows, rows.schema.names, format_, opened.leading, columns)


@click.command()
@click.argument("table")
@click.argument("key", nargs=-1)
@named_key_option("named")
@columns_option
@version_option
@format_option
@lake_options
def get(
    table: str,
    key: tuple[str, ...],
    named: tuple[str, ...],
    columns: list[str] | None,
    version: int | None,
    format_: Format,
    lake: "Lake",
) -> None:
    """Show the row of TABLE with that KEY: a value for each key column. Exit 1 if there is none.

    Give all values in the key's order, or all by --key.
    """
    from sluice.read.values import check_columns

    opened = lake.table(table, version=version)
    check_columns(table, columns, opened.schema.names)
    given = opened.row_key.read_values(key, dict(column_value("--key", text) for text in named))
    row = opened.get(*(opened.row_key.parse(given) or ()))
    if row is None:
        click.echo(f"{table} has no row with the key {' '.join(given)}", err=True)
        raise click.exceptions.Exit(ExitCode.DIFFERENCES)
    shown = arrange(list(row), format_, opened.leading, columns)
    write_record({column: row[column] for column in shown}, format_)


@click.command("range")
@click.argument("table")
@key_from_option
@key_to_option
@page_options
def range_(
    table: str,
    key_from: tuple[str, ...],
    key_to: tuple[str, ...],
    columns: list[str] | None,
    version: int | None,
    format_: Format,
    lake: "Lake",
    **how: Any,
) -> None:
    """Show the rows of TABLE between two keys, both included, in key order."""
    opened = lake.table(table, version=version)
    low, high = opened.key.parse(key_from), opened.key.parse(key_to)
    rows = opened.range(key_from=low, key_to=high, columns=columns, **how)
    write_page(rows, how["limit"], format_, opened.leading, columns)


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
    lake: "Lake",
) -> None:
    """Show what changed in TABLE, version by version."""
    from sluice.read.changelog import Changelog
    from sluice.read.values import check_columns

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
