"""The command `fetch`: rows of a window store by key and time, without Spark."""

from typing import TYPE_CHECKING, Any

import click

from sluice.terminal.options import key_from_option, key_to_option, page_options, write_page
from sluice.terminal.output import Format

if TYPE_CHECKING:
    from sluice.read.lake import Lake


@click.command(short_help="Read a window store by key and time.")
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
    columns: list[str] | None,
    version: int | None,
    format_: Format,
    lake: "Lake",
    **how: Any,
) -> None:
    """Show the rows of the window store VIEW by window start, oldest first or in --reverse."""
    from sluice.kinds.window_store.reader import window

    store = window(lake, view, version=version)
    one, low, high = (store.key.parse(texts) for texts in (key, key_from, key_to))
    rows = store.fetch(key=one, key_from=low, key_to=high, columns=columns, **how)
    write_page(rows, how["limit"], format_, store.table.leading, columns)
