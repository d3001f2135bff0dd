"""Its class: its table, its reads, its maps, its command and its block on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from tests.kinds.throwaway import Above

from sluice.declare.document import Where
from sluice.declare.registry import Kind
from sluice.declare.resolution import Scope, TableMistakes
from sluice.declare.table import Table
from sluice.terminal.options import config_option
from sluice.terminal.output import Format, write_record

if TYPE_CHECKING:
    from sluice.declare.table import Graph
    from sluice.engine.plan import Node
    from sluice.language.names import Row
    from sluice.pages import Address, Chapter
    from sluice.read.changelog import Changelog
    from sluice.read.lake import Lake


class AboveKind(Kind):
    model = Above

    def resolve(self, spec: Above, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
        source = inputs["from",]
        Scope(source.columns).check_names([spec.column], mistakes, "column")
        columns, key = source.columns, source.key
        return Table(spec.name, spec.pipeline, spec.KIND, columns, key, spec, (source.id,))

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from tests.kinds.throwaway.operator import nodes

        return nodes(table, graph)

    def verbs(self) -> Mapping[str, Callable[..., Any]]:
        return {"highest": highest}

    def read_maps(self, changelog: Changelog, *, from_version: int | None, run: str | None) -> Maps:
        lake, commits = changelog.lake, changelog.commits(from_version=from_version, run=run)
        versions = [commit.version for commit in commits]
        tables = [lake.table(changelog.name, version=version) for version in versions]
        ids = (tuple(sorted(row["id"] for row in table.read())) for table in tables)
        return Maps(tuple(map(Ids, versions, ids)))

    def chapters(self, lake: Lake, table: Table, why: Address) -> list[Chapter]:
        from sluice.pages import Chapter, Text

        key = str(highest(lake, table.id)["id"])
        return [Chapter("The highest", [Text(key, href=why([("key", key)]))])]


def highest(lake: Lake, name: str) -> Row:
    table, spec = lake.of_kind(name, Above, "highest")
    return max(lake.stored(table).read(), key=lambda row: row[spec.column])


@click.command("highest", short_help="Show the highest row.")
@click.argument("view")
@config_option
def show_highest(view: str, config: str) -> None:
    """Show the highest row of VIEW."""
    from sluice.read.lake import open_lake

    write_record(open_lake(config).highest(view), Format.JSON)


@dataclass(frozen=True)
class Ids:
    """All ids of the table after a version."""

    version: int
    ids: tuple[int, ...]

    def as_json(self, columns: Sequence[str] | None = None) -> dict[str, Any]:
        return {"version": self.version, "ids": list(self.ids)}

    def rows(self) -> Iterator[dict[str, Any]]:
        yield self.as_json()


@dataclass(frozen=True)
class Maps:
    found: tuple[Ids, ...]
    columns: tuple[str, ...] = ("version", "ids")
    leading: tuple[str, ...] = ("version",)

    def __iter__(self) -> Iterator[Ids]:
        return iter(self.found)
