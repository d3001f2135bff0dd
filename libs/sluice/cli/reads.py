"""Commands that read: none starts Spark, and each read is pinned to one version of its table."""

from typing import Any

import click

from sluice.errors import ExitCode
from sluice.read.conditions.values import check_columns
from sluice.read.lake import Lake
from sluice.terminal.fitting import arranged, write_found
from sluice.terminal.options import (
    column_value,
    columns_option,
    format_option,
    lake_options,
    named_key_option,
    version_option,
)
from sluice.terminal.output import Format, write_record
from sluice.terminal.paging import (
    key_from_option,
    key_to_option,
    limit_option,
    page_options,
    where_option,
    write_page,
)


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
    lake: Lake,
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
    lake: Lake,
) -> None:
    """Show the row of TABLE with that KEY: a value for each key column. Exit 1 if there is none.

    Give all values in the key's order, or all by --key.
    """
    opened = lake.table(table, version=version)
    check_columns(table, columns, opened.schema.names)
    given = opened.row_key.given(key, dict(column_value("--key", text) for text in named))
    row = opened.get(*(opened.row_key.parse(given) or ()))
    if row is None:
        click.echo(f"{table} has no row with the key {' '.join(given)}", err=True)
        raise click.exceptions.Exit(ExitCode.DIFFERENCES)
    shown = arranged(list(row), format_, opened.leading, columns)
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
    lake: Lake,
    **how: Any,
) -> None:
    """Show the rows of TABLE between two keys, both included, in key order."""
    opened = lake.table(table, version=version)
    low, high = opened.key.parse(key_from), opened.key.parse(key_to)
    rows = opened.range(key_from=low, key_to=high, columns=columns, **how)
    write_page(rows, how["limit"], format_, opened.leading, columns)
