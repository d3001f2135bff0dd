"""Command `cost`: the cost of batches, summed from the tables' logs."""

from dataclasses import asdict
from typing import get_args

import click

from sluice.declare.project import load
from sluice.language.interval import parse_time
from sluice.read.cost import By, Cost, costs
from sluice.terminal.options import config_option, format_option
from sluice.terminal.output import Format, write_rows

COLUMNS = ("batches", "seconds", "cpu", "read", "written", "whole", "share")


@click.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option(
    "--by",
    type=click.Choice(get_args(By)),
    default="table",
    show_default=True,
    help="Sum up by this.",
)
@click.option("--since", metavar="TIME", help="Leave out what was committed before.")
@format_option
@config_option
def cost(tables: tuple[str, ...], by: By, since: str | None, format_: Format, config: str) -> None:
    """Sum up the cost of TABLEs' batches: seconds, CPU seconds, bytes read and written. WHOLE are
    the bytes of all inputs of these batches, which rebuilds would have read. SHARE is the bytes
    read divided by WHOLE; it exceeds 1 if the changes have more bytes than the tables.
    """
    project = load(config)
    chosen = [project.graph.table(name) for name in tables] or project.graph.tables.values()
    found = costs(project, chosen, by, parse_time(since, "UTC") if since else None)
    write_rows([_row(one, by) for one in found], (by, *COLUMNS), format_)


def _row(one: Cost, by: By) -> dict[str, object]:
    return {**asdict(one), by: one.name, "share": one.share}
