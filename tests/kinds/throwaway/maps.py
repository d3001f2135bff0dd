"""Its changelog as maps: all of its ids after each version."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.read.changelog import Changelog


@dataclass(frozen=True)
class Ids:
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


def maps(changelog: Changelog, *, from_version: int | None, run: str | None) -> Maps:
    lake, commits = changelog.lake, changelog.commits(from_version=from_version, run=run)
    versions = [commit.version for commit in commits]
    tables = [lake.table(changelog.name, version=version) for version in versions]
    ids = (tuple(sorted(row["id"] for row in table.read())) for table in tables)
    return Maps(tuple(map(Ids, versions, ids)))
