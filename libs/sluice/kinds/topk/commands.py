"""The command `top`: rankings of a top-k, without Spark."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from sluice.errors import UsageError
from sluice.terminal.options import config_option, format_option, version_option
from sluice.terminal.output import Format, write_json, write_rows

if TYPE_CHECKING:
    from sluice.kinds.topk.ranking import Ranking


@click.command(short_help="Show the rankings of a top-k.")
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
    from sluice.kinds.topk.ranking import Ranking
    from sluice.read.lake import open_lake

    ranking = Ranking.open(open_lake(config), view, version)
    found = ranking.partitions(_partition(ranking, partition))
    if format_ is Format.JSON:
        names = ranking.partition_columns
        for key, ranks in found:
            write_json({"partition": dict(zip(names, key, strict=True)), "top": ranks})
        return
    rows = (row for _, ranks in found for row in ranking.flat(ranks))
    write_rows(rows, ranking.columns, format_)


def _partition(ranking: "Ranking", texts: Iterable[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--partition {text!r}: write column=value")
        given[column] = ranking.value(column, value)
    return given


COMMANDS = (top,)
