"""Options of commands that do work, and of the jobs that do the same for a scheduler."""

from collections.abc import Iterable

import click

from sluice.declare.table import Graph
from sluice.errors import UsageError

start_option = click.option(
    "--start",
    metavar="T",
    help="The first instant, e.g. 2017-05-08; without an offset, in the pipeline's timezone.",
)
end_option = click.option("--end", metavar="T", help="The instant after the last.")
changed_option = click.option(
    "--changed", is_flag=True, help="Deliver due intervals and changed files; no bounds."
)
empty_option = click.option(
    "--allow-empty",
    is_flag=True,
    help="Let an interval with rows become empty: no files, or no usable row.",
)
pin_option = click.option(
    "--pin",
    multiple=True,
    metavar="DIMENSION=VERSION",
    help="Look up this version, or a newer one that was used before.",
)


def check_bounds(start: str | None, end: str | None, *, changed: bool) -> None:
    """Raise UsageError for bounds beside `--changed`."""
    if changed and (start or end):
        raise UsageError("--changed finds its intervals itself: leave out --start and --end")


def read_pins(graph: Graph, texts: Iterable[str]) -> dict[str, int]:
    """Return the version of each dimension, by its id. Raises UsageError for any other text."""
    found = {}
    for text in texts:
        name, _, version = text.rpartition("=")
        if not name or not version.isdigit():
            raise UsageError(f"--pin takes DIMENSION=VERSION, not {text!r}")
        found[graph.table(name).id] = int(version)
    return found
