"""Commands on the state of tables and on the cost of their batches, read from the logs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import pairwise
from typing import Any, get_args

import click

from sluice.declare.project import load
from sluice.delta.places.lake_layout import REPAIR, leftovers, undeclared_tables
from sluice.language.interval import Interval, newest, parse_time
from sluice.read.status import By, TableStatus, costs
from sluice.read.status import status as statuses
from sluice.report.health import Health, health, status_records
from sluice.terminal.options import config_option, format_option
from sluice.terminal.output import Format, pluralize, print_fitted, show_time, write_rows

MISSING = "`missing: empty` if such intervals are ordinary, `missing: fail` to stop at them"
COLUMNS = (
    *("table", "rows", "behind", "quality", "quarantined"),
    *("at", "kind", "version", "last batch", "run", "refills"),
)


@click.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@format_option
@config_option
def status(tables: tuple[str, ...], format_: Format, config: str) -> None:
    """Show the state of every table, and its lag behind its inputs.

    Lines below show failures since the last successful batch, the tables that these block, missing
    intervals, intervals without files and an unfinished `forget`. They also show the lag behind
    topics, views that every batch computes whole, undeclared tables, and tables that changed
    queries no longer use.
    """
    project = load(config)
    chosen = [project.graph.table(name) for name in tables] or None
    found = statuses(project, chosen, asks_brokers=True)
    others = [] if tables else undeclared_tables(project)
    left = leftovers(project, chosen or project.graph.tables.values())
    if format_ is not Format.TABLE:
        rows = status_records(project, found, others, left)
        write_rows(rows, [*TableStatus.__dataclass_fields__, "state", "quality"], format_)
        return
    quality = health(project, (project.graph.tables[one.table] for one in found))
    lines = [_status_row(one, quality[one.table]) for one in found]
    filled = [n for n in range(len(COLUMNS)) if any(line[n] not in (None, "") for line in lines)]
    print_fitted([COLUMNS[n] for n in filled], [[line[n] for n in filled] for line in lines])
    for line in _share_hints([line for one in found for line in _troubles(one)]):
        click.echo(line)
    for line in (line for one in found for line in _unread(one)):
        click.echo(line)
    for one in found:
        if one.caution:
            click.echo(f"computed whole: {one.table}: {one.caution}")
    for name in others:
        click.echo(f"undeclared: {name}, which no declaration names")
        click.echo(f"hint: declare it again, `sluice drop {name}`, or `sluice rename {name} NEW`")
    for name, view in left.items():
        click.echo(f"left behind: {name} by {view.id}: {REPAIR.format(view.name)}")


def _share_hints(lines: Sequence[str]) -> list[str]:
    """Return the lines, with a hint of several neighbours once, below the last of them."""
    hints = [line for line in lines if line.startswith("hint: ")]
    repeated = iter([hint == other for hint, other in pairwise([*hints, ""])])
    return [line for line in lines if not (line.startswith("hint: ") and next(repeated))]


def _troubles(one: TableStatus) -> Iterator[str]:
    """Yield lines on causes that block a table."""
    pipeline = one.table.partition(".")[0]
    if failure := one.failure:
        when = f"{_second(failure.at)} (exit code {failure.exit_code})"
        yield f"failed: {one.table} at {when}: {failure.reason}"
        yield from [f"hint: {failure.hint}"] if failure.hint else []
    if one.blocked_by and not one.failure:
        yield f"blocked: {one.table}, because {', '.join(one.blocked_by)} failed"
    if one.waits_for and not one.blocked_by:
        yield f"waits: {one.table} for {', '.join(one.waits_for)} to be filled"
    for span in one.missing:
        yield f"missing: {one.table} {span}"
        yield f"hint: run `sluice run {pipeline} {span.interval.options(span.timezone)}`"
    if empty := one.without_files:
        bounds = Interval(empty[0].interval.start, empty[-1].interval.end)
        again = f"sluice run {pipeline} {bounds.options(empty[0].timezone)}"
        yield f"no files: {one.table} {newest(empty)}"
        yield f"hint: when files have come, `{again}`; or declare {MISSING}"
    for begun in one.forgetting:
        yield f"forgetting: {one.table} since {_second(begun)}, and rows may be left"
        yield f"hint: repeat that `sluice forget {one.table}`, which continues where it stopped"


def _unread(one: TableStatus) -> Iterator[str]:
    """Yield a line on the lag behind a topic or another's table, or on why it is unknown."""
    if one.unheard:
        yield f"lag: {one.table} is not known: {one.unheard.removeprefix(f'{one.table}: ')}"
    elif one.unread:
        parts = (
            ("" if part.partition is None else f"partition {part.partition} ")
            + f"by {pluralize(part.messages, part.what)}{_since(part.since)}"
            for part in one.unread
            if part.messages
        )
        each = ", ".join(parts)
        yield f"lag: {one.table} is {f'behind, {each}' if each else 'up to date'}"


def _status_row(one: TableStatus, quality: Health) -> tuple[Any, ...]:
    lags = (
        f"{lag.input}: {pluralize(lag.versions, 'version')}{_since(lag.since)}" for lag in one.lag
    )
    behind = one.problem or "\n".join(lags)
    last = one.last
    behind = "not built" if one.version is None and not behind else behind
    at, *batch = (_second(last.at), last.number, last.run) if last else (None, None, None)
    state = one.table, one.rows, behind, str(quality), one.quarantined or None
    return *state, at, one.kind, one.version, *batch, one.refills or None


def _since(moment: datetime | None) -> str:
    return f" since {_second(moment)}" if moment else ""


def _second(moment: datetime) -> str:
    return show_time(moment.replace(microsecond=0))


COST_COLUMNS = ("batches", "seconds", "cpu", "read", "written", "whole", "share")


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
    rows = [{**asdict(one), by: one.name, "share": one.share} for one in found]
    write_rows(rows, (by, *COST_COLUMNS), format_)
