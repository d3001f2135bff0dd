"""The commands that read: no Spark is started, every read is pinned to one version of its table."""

from collections.abc import Callable
from typing import Any

import click

from sluice.cli.options import config_option, format_option, version_option
from sluice.cli.output import Format, write_record, write_rows
from sluice.errors import ExitCode
from sluice.serving.lake import open_lake
from sluice.serving.rows import Rows

limit_option = click.option("--limit", type=int, help="At most so many rows.")
reverse_option = click.option("--reverse", is_flag=True, help="Last first.")
where_option = click.option("--where", metavar="E", help="Only rows for which this holds.")
after_option = click.option(
    "--after",
    metavar="CURSOR",
    help="Go on behind the last row of a page, by what it said.",
)
columns_option = click.option("--columns", metavar="A,B", help="Only these columns.")
key_from_option = click.option(
    "--key-from", multiple=True, metavar="K", help="First key; once for each key column."
)
key_to_option = click.option(
    "--key-to", multiple=True, metavar="K", help="Last key, included; once for each key column."
)


def page_options(command: Callable[..., None]) -> Callable[..., None]:
    """What every read takes that goes page by page."""
    options = (reverse_option, where_option, columns_option, limit_option, after_option)
    for option in reversed((*options, version_option, format_option, config_option)):
        command = option(command)
    return command


@click.command()
@click.argument("table")
@where_option
@columns_option
@limit_option
@version_option
@format_option
@config_option
def read(
    table: str,
    where: str | None,
    columns: str | None,
    limit: int | None,
    version: int | None,
    format_: Format,
    config: str,
) -> None:
    """Show the rows of TABLE as they are stored (`range` keeps key order)."""
    opened = open_lake(config).table(table, version=version)
    _write(opened.read(where=where, limit=limit, columns=_names(columns)), format_)


@click.command()
@click.argument("table")
@click.argument("key", nargs=-1, required=True)
@version_option
@format_option
@config_option
def get(
    table: str, key: tuple[str, ...], version: int | None, format_: Format, config: str
) -> None:
    """Show the row of TABLE with that KEY: a value for each key column. Exit 1 if there is none."""
    opened = open_lake(config).table(table, version=version)
    row = opened.get(*(opened.key.parse(key) or ()))
    if row is None:
        click.echo(f"{table} has no row with the key {' '.join(key)}", err=True)
        raise click.exceptions.Exit(ExitCode.DIFFERENCES)
    write_record(row, format_)


@click.command("range")
@click.argument("table")
@key_from_option
@key_to_option
@page_options
def range_(
    table: str,
    key_from: tuple[str, ...],
    key_to: tuple[str, ...],
    columns: str | None,
    version: int | None,
    format_: Format,
    config: str,
    **how: Any,
) -> None:
    """Show the rows of TABLE between two keys, both included, in key order."""
    opened = open_lake(config).table(table, version=version)
    low, high = opened.key.parse(key_from), opened.key.parse(key_to)
    rows = opened.range(key_from=low, key_to=high, columns=_names(columns), **how)
    _write_page(rows, how["limit"], format_)


@click.command()
@click.argument("view")
@click.option("--key", multiple=True, metavar="K", help="One key; once for each key column.")
@key_from_option
@key_to_option
@click.option("--time-from", metavar="T", help="First window start, UTC where no zone is given.")
@click.option("--time-to", metavar="T", help="Last window start, included.")
@click.option("--overlapping", is_flag=True, help="Windows that overlap the times, by their end.")
@page_options
def fetch(
    view: str,
    key: tuple[str, ...],
    key_from: tuple[str, ...],
    key_to: tuple[str, ...],
    columns: str | None,
    version: int | None,
    format_: Format,
    config: str,
    **how: Any,
) -> None:
    """Show the rows of the window store VIEW by window start, oldest first or in --reverse."""
    store = open_lake(config).window(view, version=version)
    one, low, high = (store.key.parse(texts) for texts in (key, key_from, key_to))
    how["columns"] = _names(columns)
    _write_page(store.fetch(key=one, key_from=low, key_to=high, **how), how["limit"], format_)


def _write(rows: Rows, format_: Format) -> None:
    write_rows(rows, rows.schema.names, format_)


def _write_page(rows: Rows, limit: int | None, format_: Format) -> None:
    """The rows, and where the next page begins if there may be one; for people and for programs."""
    page = rows if limit is None else list(rows)
    write_rows(page, rows.schema.names, format_)
    if limit and isinstance(page, list) and len(page) == limit and rows.cursor:
        click.echo(f"next page: --after {rows.cursor}", err=True)


def _names(columns: str | None) -> list[str] | None:
    return [name.strip() for name in columns.split(",")] if columns else None
