"""The commands that read: no Spark is started, every read is pinned to one version of its table."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from sluice.cli.options import config_option, format_option
from sluice.cli.output import (
    Format,
    Row,
    print_table,
    show_time,
    write_json,
    write_record,
    write_rows,
)
from sluice.errors import ExitCode, UsageError
from sluice.serving.changes import COMMIT_VERSION, Changelog, Full
from sluice.serving.lake import open_lake
from sluice.serving.ranking import Ranking, Ranks
from sluice.serving.rows import Rows
from sluice.serving.status import Lag, TableStatus
from sluice.serving.status import status as statuses
from sluice.specs.project import load

STATUS_COLUMNS = (
    *("table", "kind", "version", "rows", "behind"),
    *("last batch", "at", "run", "quarantined"),
)
version_option = click.option("--version", type=int, help="Read the table as of this version.")
limit_option = click.option("--limit", type=int, help="At most so many rows.")
reverse_option = click.option("--reverse", is_flag=True, help="Last first.")
where_option = click.option("--where", metavar="E", help="Only rows for which this holds.")
columns_option = click.option("--columns", metavar="A,B", help="Only these columns.")
key_from_option = click.option(
    "--key-from", multiple=True, metavar="K", help="First key; once for each key column."
)
key_to_option = click.option(
    "--key-to", multiple=True, metavar="K", help="Last key, included; once for each key column."
)


@click.command()
@click.argument("table")
@where_option
@columns_option
@limit_option
@version_option
@format_option
@config_option
def read(
    table: str,
    where: str | None,
    columns: str | None,
    limit: int | None,
    version: int | None,
    format_: Format,
    config: str,
) -> None:
    """Show the rows of TABLE as they are stored (`range` keeps key order)."""
    opened = open_lake(config).table(table, version=version)
    _write(opened.read(where=where, limit=limit, columns=_names(columns)), format_)


@click.command()
@click.argument("table")
@click.argument("key", nargs=-1, required=True)
@version_option
@format_option
@config_option
def get(
    table: str, key: tuple[str, ...], version: int | None, format_: Format, config: str
) -> None:
    """Show the row of TABLE with that KEY: a value for each key column. Exit 1 if there is none."""
    opened = open_lake(config).table(table, version=version)
    row = opened.get(*(opened.key.parse(key) or ()))
    if row is None:
        click.echo(f"{table} has no row with the key {' '.join(key)}", err=True)
        raise click.exceptions.Exit(ExitCode.DIFFERENCES)
    write_record(row, format_)


@click.command("range")
@click.argument("table")
@key_from_option
@key_to_option
@reverse_option
@where_option
@columns_option
@limit_option
@version_option
@format_option
@config_option
def range_(
    table: str,
    key_from: tuple[str, ...],
    key_to: tuple[str, ...],
    columns: str | None,
    version: int | None,
    format_: Format,
    config: str,
    **how: Any,
) -> None:
    """Show the rows of TABLE between two keys, both included, in key order."""
    opened = open_lake(config).table(table, version=version)
    low, high = opened.key.parse(key_from), opened.key.parse(key_to)
    _write(opened.range(key_from=low, key_to=high, columns=_names(columns), **how), format_)


@click.command()
@click.argument("view")
@click.option("--key", multiple=True, metavar="K", help="One key; once for each key column.")
@key_from_option
@key_to_option
@click.option("--time-from", metavar="T", help="First window start, UTC where no zone is given.")
@click.option("--time-to", metavar="T", help="Last window start, included.")
@reverse_option
@where_option
@columns_option
@limit_option
@version_option
@format_option
@config_option
def fetch(
    view: str,
    key: tuple[str, ...],
    key_from: tuple[str, ...],
    key_to: tuple[str, ...],
    columns: str | None,
    version: int | None,
    format_: Format,
    config: str,
    **how: Any,
) -> None:
    """Show the rows of the window store VIEW by window start, oldest first or in --reverse."""
    store = open_lake(config).window(view, version=version)
    one, low, high = (store.key.parse(texts) for texts in (key, key_from, key_to))
    how["columns"] = _names(columns)
    _write(store.fetch(key=one, key_from=low, key_to=high, **how), format_)


@click.command()
@click.argument("view")
@click.option(
    "--partition", multiple=True, metavar="COLUMN=VALUE", help="Only this partition; repeatable."
)
@version_option
@format_option
@config_option
def top(
    view: str, partition: tuple[str, ...], version: int | None, format_: Format, config: str
) -> None:
    """Show the rankings of the top-k VIEW, partition by partition."""
    ranking = open_lake(config).ranking(view, version=version)
    found = ranking.partitions(_partition(ranking, partition))
    if format_ is Format.JSON:
        names = ranking.partition_columns
        for key, ranks in found:
            write_json({"partition": dict(zip(names, key, strict=True)), "top": ranks})
        return
    rows = (row for _, ranks in found for row in _flat(ranks, ranking))
    write_rows(rows, _ranked_columns(ranking), format_)


@click.command()
@click.argument("table")
@click.option("--from-version", type=int, help="The first version, included.")
@click.option("--to-version", type=int, help="The last version, included.")
@click.option("--run", metavar="ID", help="Only what this run changed.")
@click.option(
    "--as",
    "as_",
    type=click.Choice(["rows", "map"]),
    default="rows",
    show_default=True,
    help="Each changed row, or a top-k's whole ranking of each touched partition.",
)
@format_option
@config_option
def changes(
    table: str,
    from_version: int | None,
    to_version: int | None,
    run: str | None,
    as_: str,
    format_: Format,
    config: str,
) -> None:
    """Show what changed in TABLE, version by version."""
    lake = open_lake(config)
    changelog = Changelog.open(lake, table, to_version)
    if as_ == "rows":
        _write(changelog.rows(from_version=from_version, run=run), format_)
        return
    ranking = lake.ranking(table, version=to_version)
    _write_maps(changelog.maps(from_version=from_version, run=run), ranking, format_)


@click.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@format_option
@config_option
def status(tables: tuple[str, ...], format_: Format, config: str) -> None:
    """Show where every table stands, and how far behind its inputs it is."""
    project = load(config)
    chosen = [project.graph.table(name) for name in tables] or None
    found = statuses(project, chosen)
    if format_ is not Format.TABLE:
        rows = [asdict(one) for one in found]
        write_rows(rows, list(TableStatus.__dataclass_fields__), format_)
        return
    print_table(STATUS_COLUMNS, [_status_row(one) for one in found])


def _write(rows: Rows, format_: Format) -> None:
    write_rows(rows, rows.schema.names, format_)


def _names(columns: str | None) -> list[str] | None:
    return [name.strip() for name in columns.split(",")] if columns else None


def _partition(ranking: Ranking, texts: Iterable[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--partition {text!r}: write column=value")
        given[column] = ranking.value(column, value)
    return given


def _ranked_columns(ranking: Ranking) -> list[str]:
    names = ranking.table.schema.names
    return names if ranking.spec.rank else [*names, "rank"]


def _flat(ranks: Ranks, ranking: Ranking) -> Iterator[Row]:
    """The rows of a ranking, each with its rank."""
    for rank, found in ranks.items():
        for row in found if isinstance(found, list) else [found]:
            yield row if ranking.spec.rank else {**row, "rank": rank}


def _write_maps(maps: Iterator[Full], ranking: Ranking, format_: Format) -> None:
    if format_ is Format.JSON:
        for full in maps:
            version = {COMMIT_VERSION: full.version}
            write_json({**version, "partition": full.partition, "top": full.ranks})
        return
    rows = (
        {COMMIT_VERSION: full.version, **full.partition, **row}
        for full in maps
        for row in (*_flat(full.ranks, ranking),) or ({},)
    )
    write_rows(rows, [COMMIT_VERSION, *_ranked_columns(ranking)], format_)


def _status_row(one: TableStatus) -> tuple[Any, ...]:
    behind = one.problem or "\n".join(_lag_text(lag) for lag in one.lag)
    last = one.last
    behind = "not built" if one.version is None and not behind else behind
    batch = (last.number, _second(last.at), last.run) if last else (None, None, None)
    quarantined = one.quarantined if one.kind == "source" else None
    return one.table, one.kind, one.version, one.rows, behind, *batch, quarantined


def _second(moment: datetime) -> str:
    return show_time(moment.replace(microsecond=0))


def _lag_text(lag: Lag) -> str:
    since = f" since {_second(lag.since)}" if lag.since else ""
    return f"{lag.input}: {lag.versions} version{'s' if lag.versions != 1 else ''}{since}"
