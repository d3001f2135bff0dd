"""Command `why`: name the commit that gave a row its values, without Spark."""

from collections.abc import Iterator
from typing import Any

import click

from sluice.errors import ExitCode
from sluice.read.changes import Changelog
from sluice.read.commits import Commit
from sluice.read.lake import Lake
from sluice.read.origin import Origin, Read, origin
from sluice.terminal.options import format_option, lake_options, version_option
from sluice.terminal.output import Format, print_table, write_json, write_record

SHOWN = 5  # commits of each source


@click.command()
@click.argument("table")
@click.argument("key", nargs=-1, required=True)
@click.option("--when", metavar="COLUMN", help="Name the commit that last changed this column.")
@version_option
@format_option
@lake_options
def why(
    table: str,
    key: tuple[str, ...],
    when: str | None,
    version: int | None,
    format_: Format,
    lake: Lake,
) -> None:
    """Show which commit last changed the row of TABLE with that KEY, and what it had read.

    KEY is a value for each key column. Exit 1 if no version had the row.
    """
    changelog = Changelog.open(lake, table, version)
    found = origin(changelog, changelog.table.row_key.parse(key), when)
    if found is None:
        click.echo(f"{table} never had a row with the key {' '.join(key)}", err=True)
        raise click.exceptions.Exit(ExitCode.DIFFERENCES)
    if format_ is Format.JSON:
        write_json(_commit(found.commit) | _change(found) | {"reads": _reads(found)})
        return
    write_record(_commit(found.commit) | _change(found), format_)
    if format_ is Format.TABLE and found.reads:
        print_table(("source", "version", "run", "at"), _lines(found.reads), "newly read")


def _commit(commit: Commit) -> dict[str, Any]:
    made = commit.position
    return {
        "version": commit.version,
        "at": commit.at,
        "batch": made.batch if made else None,
        "run": made.run if made else None,
        "kind": made.kind if made else commit.operation,
    }


def _change(found: Origin) -> dict[str, Any]:
    return {"change": found.change, "before": found.before, "after": found.after}


def _reads(found: Origin) -> list[dict[str, Any]]:
    """Return each source's versions, and the newest of their commits, for programs."""
    return [
        {
            "source": read.source,
            "after_version": read.after,
            "to_version": read.upto,
            "count": len(read.commits),
            "commits": [_commit(commit) for commit in read.commits[:SHOWN]],
        }
        for read in found.reads
    ]


def _lines(reads: tuple[Read, ...]) -> Iterator[tuple[Any, ...]]:
    for read in reads:
        for commit in read.commits[:SHOWN]:
            run = commit.position.run if commit.position else None
            yield read.source, commit.version, run, commit.at
        if (others := len(read.commits) - SHOWN) > 0:
            yield read.source, f"and {others} before", None, None
