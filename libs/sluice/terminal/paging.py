"""Options and output of commands that show rows page by page."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from sluice.terminal.fitting import write_found
from sluice.terminal.options import columns_option, format_option, lake_options, version_option
from sluice.terminal.output import Format

if TYPE_CHECKING:
    from sluice.read.ordered.rows import Rows

limit_option = click.option("--limit", type=int, help="Largest number of rows.")
reverse_option = click.option("--reverse", is_flag=True, help="Last first.")
where_option = click.option("--where", metavar="E", help="Only rows that meet this condition.")
after_option = click.option(
    "--after",
    metavar="CURSOR",
    help="Continue after a page, by the cursor it printed.",
)
key_from_option = click.option(
    "--key-from", multiple=True, metavar="K", help="First key; once for each key column."
)
key_to_option = click.option(
    "--key-to", multiple=True, metavar="K", help="Last key, included; once for each key column."
)


def page_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every read that goes page by page."""
    options = (reverse_option, where_option, columns_option, limit_option, after_option)
    for option in reversed((*options, version_option, format_option, lake_options)):
        command = option(command)
    return command


def write_page(
    rows: "Rows",
    limit: int | None,
    format_: Format,
    lead: Sequence[str],
    chosen: Sequence[str] | None,
) -> None:
    """Write the rows and, if there may be a next page, its cursor; for people and for programs."""
    page = rows if limit is None else list(rows)
    write_found(page, rows.schema.names, format_, lead, chosen)
    if limit and isinstance(page, list) and len(page) == limit and rows.cursor:
        click.echo(f"next page: --after {rows.cursor}", err=True)
