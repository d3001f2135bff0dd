"""The command `highest`."""

import click

from sluice.terminal.options import config_option
from sluice.terminal.output import Format, write_record


@click.command(short_help="Show the highest row.")
@click.argument("view")
@config_option
def highest(view: str, config: str) -> None:
    """Show the highest row of VIEW."""
    from sluice.read.lake import open_lake

    write_record(open_lake(config).highest(view), Format.JSON)


COMMANDS = (highest,)
