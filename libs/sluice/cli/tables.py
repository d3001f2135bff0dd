"""Commands that remove or rename a table of the lake."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

import click

from sluice.declare.project import Project, load
from sluice.declare.table import Table, UnknownTable
from sluice.errors import ExitCode, UsageError
from sluice.operate.forget import Receipt, sources_with
from sluice.operate.forget import forget as forget_subjects
from sluice.operate.forgetting import Done
from sluice.operate.subjects import Asked
from sluice.operate.tables import REBUILD, Dropped, Renamed, found
from sluice.operate.tables import drop as drop_table
from sluice.operate.tables import rename as rename_table
from sluice.spark.session import with_spark
from sluice.terminal.options import config_option, format_option
from sluice.terminal.output import Format, pluralize, print_table, to_json, write_json, write_rows


@click.command()
@click.argument("table")
@click.option("--now", is_flag=True, help="Delete the files at once, instead of after a week.")
@format_option
@config_option
def drop(table: str, now: bool, format_: Format, config: str) -> None:
    """Remove TABLE from the lake, with its internal tables.

    Refused while other tables depend on it; they are listed. The files are kept for a week.
    """
    project = load(config)
    table_id = found(project, table)
    done = drop_table(project, table_id, datetime.now(UTC), at_once=now)
    _show([asdict(one) for one in done], Dropped, format_)
    if table_id in project.graph.tables:
        click.echo(f"warning: {table_id} is still declared: the next run builds it again", err=True)


@click.command()
@click.argument("table")
@click.argument("new")
@format_option
@config_option
def rename(table: str, new: str, format_: Format, config: str) -> None:
    """Give the stored TABLE the name NEW, which the configuration has for it already.

    Its history stays, and tables that read it continue from their positions.
    """
    project = load(config)
    done = rename_table(
        project, found(project, table), _renamed_in_configuration(project, table, new)
    )
    _show([asdict(one) for one in done], Renamed, format_)
    for one in done:
        if one.what == REBUILD:
            click.echo(
                f"warning: {one.table} differs in more than this name: run `sluice plan` to see "
                "what, and `sluice rebuild --changed`",
                err=True,
            )


def _renamed_in_configuration(project: Project, table: str, new: str) -> Table:
    """Return the declared table with the new name. Raises UsageError if there is none yet."""
    try:
        return project.graph.table(new)
    except UnknownTable as error:
        raise UsageError(
            f"unknown table {new!r}: the configuration does not declare it yet",
            hint=f"write it there first, in place of {table!r}, where that is declared and "
            "wherever it is named; then run this again",
        ) from error


def _show(rows: Sequence[dict[str, Any]], model: type, format_: Format) -> None:
    columns = [field.name for field in fields(model)]
    if format_ is Format.TABLE:
        print_table([c.replace("_", " ") for c in columns], [list(row.values()) for row in rows])
    else:
        write_rows(rows, columns, format_)


WARNING = (
    "warning: the past of the tables above was removed: earlier versions and feeds can't be read, "
    "and readers must open them again"
)

IN_VERSIONS = (
    "warning: the lake's bucket keeps earlier versions of objects, with the subject; delete these "
    "by a lifecycle rule for noncurrent versions"
)

MOST_SHOWN = 10  # subjects of a source; `--json` has all


@click.command()
@click.argument("source", required=False)
@click.option(
    "--key", "key", multiple=True, metavar="VALUE", help="Value of each key column, in order."
)
@click.option("--where", metavar="CONDITION", help="Condition for its rows: household_id = 2115.")
@click.option(
    "--all", "everywhere", is_flag=True, help="In all sources that have the condition's columns."
)
@format_option
@config_option
def forget(
    source: str | None,
    key: tuple[str, ...],
    where: str | None,
    everywhere: bool,
    format_: Format,
    config: str,
) -> None:
    """Remove a subject's rows from SOURCE, its views, their history and every file of the lake.

    The lake is searched afterwards. Exit 1 if the subject is still found. Rows of it that are
    delivered later go to quarantine without values. Landing files and topics are not touched.
    """
    project = load(config)
    if bool(key) == bool(where):
        raise UsageError("name the subject by --key, or its rows by --where")
    if everywhere == bool(source) or (everywhere and key):
        raise UsageError("name a source, or give --where with --all for all that have its columns")
    asked = Asked(key, where or "")
    chosen = [project.graph.table(source)] if source else sources_with(project, asked)
    receipt = with_spark(
        project.spark, lambda spark: forget_subjects(spark, project, chosen, asked)
    )
    _show_receipt(receipt, asked, format_)
    if not receipt.is_proven:
        raise click.exceptions.Exit(int(ExitCode.DIFFERENCES))


def _show_receipt(receipt: Receipt, asked: Asked, format_: Format) -> None:
    searched = receipt.searched
    if format_ is not Format.TABLE:
        write_json(asdict(receipt) | {"is_proven": receipt.is_proven})
        return
    columns = [field.name for field in fields(Done)]
    print_table(columns, [tuple(asdict(line).values()) for line in receipt.done])
    how = "columns and texts" if searched.in_texts else "columns"
    looked = f"{pluralize(searched.files, 'file')} of {searched.bytes:,} bytes searched, {how}"
    click.echo(f"{looked}; id {receipt.id}")
    for one in receipt.forgotten:
        subjects = [
            ", ".join(f"{name} = {to_json(value)}" for name, value in subject.items())
            for subject in one.subjects[:MOST_SHOWN]
        ]
        if (more := len(one.subjects) - MOST_SHOWN) > 0:
            subjects.append(f"and {more} more")
        click.echo(f"{one.source}: {'; '.join(subjects)}; not touched: {one.outside}")
    click.echo(WARNING, err=True)
    if receipt.in_versions:
        click.echo(IN_VERSIONS, err=True)
    for place, count in sorted(receipt.elsewhere.items()):
        found = f"warning: {place} has the same values in {pluralize(count, 'place')}"
        click.echo(f"{found}, perhaps of somebody else", err=True)
    if receipt.is_proven:
        end = "no file of these tables" if receipt.elsewhere else "no file of the lake"
        click.echo(f"forgotten: {end} names it, {receipt.ended_at:%FT%TZ}")
        return
    for place, count in sorted(receipt.left.items()):
        click.echo(f"still found: {place}, {pluralize(count, 'place')}", err=True)
        click.echo(f"  hint: {receipt.remedies[place]}", err=True)
    if any("--where" in remedy for remedy in receipt.remedies.values()):
        command = f'sluice forget --where "{asked.where}" --all'
        click.echo(f"hint: all at once: `{command}`", err=True)
