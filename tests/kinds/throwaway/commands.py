"""The command `highest`."""

import click

from sluice.cli.options import config_option
from sluice.cli.output import Format, write_record


@click.command(short_help="Show the highest row.")
@click.argument("view")
@config_option
def highest(view: str, config: str) -> None:
    """Show the highest row of VIEW."""
    from sluice.serving.lake import open_lake

    write_record(open_lake(config).highest(view), Format.JSON)


COMMANDS = (highest,)
