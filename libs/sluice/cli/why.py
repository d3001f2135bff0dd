"""Commands on a row: which commit and which rows it comes from, or why it is absent."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from sluice.errors import ExitCode, UsageError
from sluice.language.names import STATE, internal
from sluice.operate.why import COMMITS, change_record, commit_record, reason_record, row_record
from sluice.read.changelog import Changelog
from sluice.read.key_order import KeyRange
from sluice.read.lake import Lake
from sluice.read.naming import Given, ReflectedVersions, naming_options, origin, row_of
from sluice.terminal.options import (
    F,
    column_value,
    format_option,
    lake_options,
    named_key_option,
    version_option,
)
from sluice.terminal.output import (
    Format,
    pluralize,
    print_table,
    write_json,
    write_record,
    write_rows,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from sluice.operate.why import ContributingRows, Delivered
    from sluice.operate.why_not import WhyNot

SHOWN = 5  # rows of each table
DELIVERED = ("source", "from", "to", "rows", "version", "run", "at", "files")


def row_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add KEY, `--key`, `--partition` and what kinds add, as the argument `given`."""
    known = naming_options()

    @wraps(command)
    def naming(
        key: tuple[str, ...], keys: tuple[str, ...], partition: tuple[str, ...], **values: Any
    ) -> Any:
        others = {name: values.pop(name) for name in known}
        columns, places = (
            dict(column_value(option, text) for text in texts)
            for option, texts in (("--key", keys), ("--partition", partition))
        )
        given = replace(Given.of(key, places, others), columns=columns)
        if given == Given():
            raise UsageError("no row is given", hint="give its KEY; --help shows other ways")
        return command(given=given, **values)

    named = naming
    for name, one in reversed(known.items()):
        named = click.option(f"--{name}", type=one.type, metavar=one.metavar, help=one.help)(named)
    named = click.option(
        "--partition",
        multiple=True,
        metavar="COLUMN=VALUE",
        help="A column of the row's partition; repeatable.",
    )(named)
    return click.argument("key", nargs=-1)(named_key_option("keys")(named))


def rows_option(what: str) -> Callable[[F], F]:
    """Add `--rows N`, whose help begins with "Rows to show"."""
    return click.option(
        "--rows",
        type=click.IntRange(min=0),
        default=SHOWN,
        show_default=True,
        metavar="N",
        help=f"Rows to show {what}",
    )


@click.command()
@click.argument("table")
@row_options
@click.option("--when", metavar="COLUMN", help="Name the commit that last changed this column.")
@rows_option("of each table that the row comes from; 0 shows only the commit.")
@version_option
@format_option
@lake_options
def why(
    table: str,
    given: Given,
    when: str | None,
    rows: int,
    version: int | None,
    format_: Format,
    lake: Lake,
) -> None:
    """Show which commit last changed the row of TABLE with that KEY, and the rows it comes from.

    KEY is a value for each key column, in the key's order; or give all by --key. Rows of some kinds
    may be named by other options. Exit 1 if no version had the row.
    """
    changelog = Changelog.open(lake, table, version)
    row = row_of(changelog, given)
    found = origin(changelog, row, when) if row else None
    if row is None or found is None:
        key = " ".join((*given.key, *(f"{n}={v}" for n, v in given.columns.items())))
        never = f"never had a row with the key {key}" if given.is_key else "has no such row"
        click.echo(f"{table} {never}", err=True)
        raise click.exceptions.Exit(ExitCode.DIFFERENCES)
    walks = rows > 0 and found.after is not None
    if format_ is Format.JSON:
        write_json(row_record(found, _sources(changelog, row) if walks else [], rows))
        return
    write_record(commit_record(found.commit) | change_record(found), format_)
    if format_ is Format.TABLE:
        if found.reads:
            print_table(("source", "version", "run", "at"), _lines(found.reads), "newly read")
        _print(_sources(changelog, row) if walks else [], rows)


def _sources(changelog: Changelog, row: KeyRange) -> "list[ContributingRows]":
    from sluice.operate.why import sources_of

    return sources_of(changelog, row)


def _print(sources: "list[ContributingRows]", most: int) -> None:
    state = internal("", STATE)
    for source in (source for source in sources if not source.table.endswith(state)):
        at = "" if source.version is None else f", version {source.version}"
        click.echo(f"from {source.table}{at}: {pluralize(source.rows.num_rows, 'row')}")
        rows = source.rows.slice(0, most)
        print_table(rows.column_names, zip(*rows.to_pydict().values(), strict=True))
        if source.untraced:
            click.echo(f"their origin is unknown: {source.untraced}")
    if delivered := [line for source in sources for line in _deliveries(source, most)]:
        click.echo("delivered by")
        print_table(DELIVERED, delivered)


def _deliveries(source: "ContributingRows", most: int) -> Iterator[tuple[Any, ...]]:
    """Yield the first deliveries of a table, and the number of the others."""
    yield from map(_line, source.deliveries[:most])
    if (others := len(source.deliveries) - most) > 0:
        name = source.deliveries[0].source
        yield name, f"and {others} more", *(None,) * (len(DELIVERED) - 2)


def _line(delivery: "Delivered") -> tuple[Any, ...]:
    commit, within = delivery.commit, delivery.interval
    made = (commit.version, commit.position.run, commit.at) if commit and commit.position else ()
    version, run, at = made or (None, None, None)
    files = " ".join(delivery.files)
    return delivery.source, within.start, within.end, delivery.rows, version, run, at, files


def _lines(reads: tuple[ReflectedVersions, ...]) -> Iterator[tuple[Any, ...]]:
    for read in reads:
        for commit in read.commits[:COMMITS]:
            run = commit.position.run if commit.position else None
            yield read.source, commit.version, run, commit.at
        if (others := len(read.commits) - COMMITS) > 0:
            yield read.source, f"and {others} before", None, None


REASON_COLUMNS = ("table", "why", "what", "count")


@click.command("why-not")
@click.argument("table")
@row_options
@rows_option("for each reason.")
@version_option
@format_option
@lake_options
def why_not(
    table: str, given: Given, rows: int, version: int | None, format_: Format, lake: Lake
) -> None:
    """Show why TABLE has no row with that KEY, from the table down to its files.

    With --partition alone, rows are given by any columns. Exit 1 if the row is there.
    """
    from sluice.operate.why_not import reasons_of

    found = reasons_of(Changelog.open(lake, table, version), given)
    if found is None:
        click.echo(f"{table} has that row; `sluice why` explains it", err=True)
        raise click.exceptions.Exit(ExitCode.DIFFERENCES)
    if format_ is Format.JSON:
        reasons = [reason_record(reason, rows) for reason in found.reasons]
        write_json({"table": found.table, "version": found.version, "reasons": reasons})
    elif format_ is Format.CSV:
        write_rows([reason_record(reason, 0) for reason in found.reasons], REASON_COLUMNS, format_)
    else:
        _print_reasons(found, rows)


def _print_reasons(found: "WhyNot", most: int) -> None:
    click.echo(f"{found.table}, version {found.version}, has no such row")
    for reason in found.reasons:
        click.echo(f"{reason.table}: {reason.why}, {reason.what}")
        _print_some(reason.rows, most)
        if reason.others is not None:
            click.echo("because of")
            _print_some(reason.others, most)


def _print_some(rows: "pa.Table | None", most: int) -> None:
    if rows is None or not rows.num_rows or not most:
        return
    some = rows.slice(0, most)
    title = pluralize(rows.num_rows, "row") if rows.num_rows > most else ""
    print_table(rows.column_names, zip(*some.to_pydict().values(), strict=True), title)
