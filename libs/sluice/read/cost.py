"""Cost of a lake's batches, as their commits note it: time, CPU, bytes read and written.

Bytes read are those of the new data; `whole` are those of all inputs, which a rebuild would read.
A batch that only delivers has no such inputs. Commits that Sluice made before it noted costs are
left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any, Literal

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.inventory import stored_tables
from sluice.delta.places.lake_layout import layout
from sluice.language.names import declared_id
from sluice.read.stored.commits import Commit, back_from

By = Literal["table", "pipeline", "day"]
FIELDS = {"table": "id", "pipeline": "pipeline"}


@dataclass(frozen=True)
class Cost:
    """Sum over batches, which count once, with the commits to their states and deliveries.

    `read_of_whole` and `whole` count only batches that have inputs.
    """

    name: str
    batches: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    read: int = 0
    written: int = 0
    read_of_whole: int = 0
    whole: int = 0

    @property
    def share(self) -> float | None:
        """Bytes read divided by those that rebuilds would have read; None if unknown.

        Changes may be more bytes than the tables that they end in, and the share above 1.
        """
        return round(self.read_of_whole / self.whole, 4) if self.whole else None

    def plus(self, other: "Cost") -> "Cost":
        """Return the sum of both, under this name."""
        pairs = zip(astuple(self)[1:], astuple(other)[1:], strict=True)
        return Cost(self.name, *(round(one + more, 3) for one, more in pairs))


def costs(
    project: Project, tables: Iterable[Table], by: By = "table", since: datetime | None = None
) -> list[Cost]:
    """Return the costs of these tables, including their states and deliveries.

    `since`: only commits that are not older.
    """
    found: dict[str, Cost] = {}
    wanted, lake = {table.id: table for table in tables}, layout(project)
    for table_id in sorted(stored_tables(lake)):
        table = wanted.get(declared_id(table_id))
        if table is None:
            continue
        batches = int(table_id == table.id)
        for commit, cost in _read_costs(lake.uri(table_id), since, batches):
            name = f"{commit.at:%Y-%m-%d}" if by == "day" else getattr(table, FIELDS[by])
            found[name] = found.get(name, Cost(name)).plus(cost)
    return [found[name] for name in sorted(found)]


def _read_costs(uri: str, since: datetime | None, batches: int) -> Iterator[tuple[Commit, Cost]]:
    """Yield the commits that note what they cost, each as so many batches."""
    for commit in back_from(uri, open_table(uri).version()):
        if since and commit.at < since:
            return
        if commit.position and commit.position.cost:
            yield commit, _cost(commit, commit.position.cost, batches)


def _cost(commit: Commit, note: Mapping[str, Any], batches: int) -> Cost:
    whole = note.get("whole", 0)
    began = datetime.fromisoformat(note["began"])
    return Cost(
        "",
        batches,
        max((commit.at - began).total_seconds(), note["seconds"]),
        note["cpu"],
        note["read"],
        commit.written,
        note["read"] if whole else 0,
        whole,
    )
