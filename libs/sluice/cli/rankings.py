"""The commands that show rankings and changelogs: `top` and `changes`, without Spark."""

from collections.abc import Iterable, Iterator
from typing import Any

import click

from sluice.cli.options import config_option, format_option, version_option
from sluice.cli.output import Format, Row, write_json, write_rows
from sluice.errors import UsageError
from sluice.serving.changes import COMMIT_VERSION, Changelog, Full
from sluice.serving.lake import open_lake
from sluice.serving.ranking import Ranking, Ranks


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
        rows = changelog.rows(from_version=from_version, run=run)
        write_rows(rows, rows.schema.names, format_)
        return
    ranking = lake.ranking(table, version=to_version)
    _write_maps(changelog.maps(from_version=from_version, run=run), ranking, format_)


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
