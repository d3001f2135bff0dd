"""Command `forget`: remove a subject from a source, from its views and from every file."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields

import click

from sluice.declare.project import load
from sluice.declare.table import Table
from sluice.errors import ExitCode, UsageError
from sluice.operate.erasure.forget import Receipt
from sluice.operate.erasure.forget import forget as forget_subject
from sluice.operate.erasure.forgetting import Done
from sluice.operate.erasure.subject import Asked, by_condition, by_key
from sluice.spark.session import with_spark
from sluice.terminal.options import config_option, format_option
from sluice.terminal.output import Format, counted, print_table, write_json

WARNING = (
    "warning: the past of the tables above was removed: earlier versions and feeds can't be read, "
    "and readers must open them again"
)

IN_VERSIONS = (
    "warning: the lake's bucket keeps earlier versions of objects, with the subject; delete these "
    "by a lifecycle rule for noncurrent versions"
)


@click.command()
@click.argument("source")
@click.option(
    "--key", "key", multiple=True, metavar="VALUE", help="Value of each key column, in order."
)
@click.option("--where", metavar="CONDITION", help="Condition for its rows: household_id = 2115.")
@format_option
@config_option
def forget(
    source: str, key: tuple[str, ...], where: str | None, format_: Format, config: str
) -> None:
    """Remove a subject's rows from SOURCE, its views, their history and every file of the lake.

    The lake is searched afterwards. Exit 1 if the subject is still found. Rows of it that are
    delivered later go to quarantine without values. Landing files and topics are not touched.
    """
    project = load(config)
    table = project.graph.table(source)
    if bool(key) == bool(where):
        raise UsageError("name the subject by --key, or its rows by --where")
    asked = _asked(table, key, where)
    receipt = with_spark(project.spark, lambda spark: forget_subject(spark, project, table, asked))
    _show(receipt, format_)
    if not receipt.is_proven:
        raise click.exceptions.Exit(int(ExitCode.DIFFERENCES))


def _asked(table: Table, key: Sequence[str], where: str | None) -> Asked:
    words = json.dumps({"key": key, "where": where})
    if where:
        return Asked(words, lambda schema, uri: by_condition(table, schema, uri, where))
    return Asked(words, lambda schema, _: by_key(table, schema, key))


def _show(receipt: Receipt, format_: Format) -> None:
    searched = receipt.searched
    if format_ is not Format.TABLE:
        write_json(asdict(receipt) | {"is_proven": receipt.is_proven})
        return
    columns = [field.name for field in fields(Done)]
    print_table(columns, [tuple(asdict(line).values()) for line in receipt.done])
    how = "columns and texts" if searched.in_texts else "columns"
    looked = f"{counted(searched.files, 'file')} of {searched.bytes:,} bytes searched, {how}"
    click.echo(f"{looked}; id {receipt.id}")
    click.echo(f"not touched: {receipt.outside}")
    click.echo(WARNING, err=True)
    if receipt.in_versions:
        click.echo(IN_VERSIONS, err=True)
    for place, count in sorted(receipt.elsewhere.items()):
        found = f"warning: {place} names it, too ({counted(count, 'place')})"
        click.echo(f"{found}, and has no rows of {receipt.source}", err=True)
    if receipt.is_proven:
        click.echo(f"forgotten: no file of these tables names it, {receipt.ended_at:%FT%TZ}")
        return
    for place, count in sorted(receipt.left.items()):
        click.echo(f"still found: {place}, {counted(count, 'place')}", err=True)
    click.echo(
        "hint: forget it in the sources that have it, too; a file of a killed attempt is deleted "
        "when it is a day old. Then run this again",
        err=True,
    )
