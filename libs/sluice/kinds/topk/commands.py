"""The command `top`: rankings of a top-k, without Spark."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from sluice.terminal.options import (
    column_value,
    columns_option,
    format_option,
    lake_options,
    version_option,
)
from sluice.terminal.output import Format, write_found, write_json

if TYPE_CHECKING:
    from sluice.kinds.topk.reader import Ranking
    from sluice.read.lake import Lake


@click.command(short_help="Show the rankings of a top-k.")
@click.argument("view")
@click.option(
    "--partition", multiple=True, metavar="COLUMN=VALUE", help="Only this partition; repeatable."
)
@columns_option
@version_option
@format_option
@lake_options
def top(
    view: str,
    partition: tuple[str, ...],
    columns: list[str] | None,
    version: int | None,
    format_: Format,
    lake: "Lake",
) -> None:
    """Show the rankings of the top-k VIEW, partition by partition."""
    from sluice.kinds.topk.reader import Ranking
    from sluice.read.values import check_columns

    ranking = Ranking.open(lake, view, version)
    check_columns(view, columns, ranking.columns)
    found = ranking.partitions(_partition(ranking, partition))
    if format_ is Format.JSON:
        names = ranking.partition_columns
        for key, ranks in found:
            group = dict(zip(names, key, strict=True))
            write_json({"partition": group, "top": ranking.only(ranks, columns)})
        return
    rows = (row for _, ranks in found for row in ranking.flat(ranks))
    write_found(rows, ranking.columns, format_, ranking.leading, columns)


def _partition(ranking: "Ranking", texts: Iterable[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for text in texts:
        column, value = column_value("--partition", text)
        given[column] = ranking.value(column, value)
    return given
