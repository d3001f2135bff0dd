"""Versions of a Delta table that others write: those that a source has read, and what they need.

The place that a source has reached has the table's id and a fingerprint of the last commit read,
because a recreated or restored table reuses version numbers.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sluice.delta.log import CommitRange
from sluice.delta.log.opened import Foreign
from sluice.delta.log.position import Head
from sluice.errors import (
    FeedVacuumed,
    HistoryLost,
    InputBehind,
    InputReplaced,
    LogCleaned,
    QualityStop,
)


@dataclass(frozen=True)
class VersionRange:
    """Versions that were read, `(after, upto]`, the commit of the last one, and the moment.

    `after` is -1 for a version that was read whole. `gaps`: versions that were passed over by
    request, as (after, upto).
    """

    table_id: str
    after: int
    upto: int
    commit: str = ""
    at: datetime | None = None
    gaps: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, head: Head | None, table: str) -> "VersionRange | None":
        """Return the place that a table's newest commit holds. Raises InputReplaced."""
        plain = head.position.topic if head and head.position else {}
        if not plain:
            return None
        if "table" not in plain:
            raise InputReplaced(f"{table} was filled from a different place", hint=_choice(table))
        at = datetime.fromisoformat(plain["at"]) if plain["at"] else None
        gaps = tuple((after, upto) for after, upto in plain.get("gaps", ()))
        after, upto = plain["versions"]
        return cls(plain["table"], after, upto, plain["commit"], at, gaps)

    def to_dict(self) -> dict[str, Any]:
        """Return the place for a commit."""
        return {
            "table": self.table_id,
            "versions": [self.after, self.upto],
            "commit": self.commit,
            "at": self.at.isoformat() if self.at else None,
            **({"gaps": [list(gap) for gap in self.gaps]} if self.gaps else {}),
        }

    def fingerprint(self) -> str:
        """Return what its batch has read, for the note of the batch."""
        read = {"table": self.table_id, "versions": [self.after, self.upto]}
        return json.dumps(read, separators=(",", ":"))

    def advance(self, found: Foreign, commits: CommitRange, at: datetime) -> "VersionRange":
        """Return the place after a span of commits."""
        reached = replace(self, table_id=found.table_id, after=commits.after, upto=commits.upto)
        return replace(reached, commit=found.fingerprint(commits.upto), at=at)

    def check(self, found: Foreign, table: str) -> None:
        """Raise HistoryLost unless the table still has every commit from here on."""
        kind, what = self._lost(found)
        if kind:
            raise kind(f"{table}: {what}", hint=_choice(table))

    def _lost(self, found: Foreign) -> tuple[type[HistoryLost] | None, str]:
        known = found.fingerprint(self.upto) if self.upto <= found.version else ""
        is_other = self.table_id != found.table_id if not known else known != self.commit
        if is_other and self.table_id != found.table_id:
            what = f"the table at {found.uri} is another one: it was dropped and created again"
            return InputReplaced, what
        if found.version < self.upto:
            what = f"{found.uri} was read up to version {self.upto}, but ends at {found.version}"
            return InputBehind, f"{what}: an older state was restored"
        if is_other:
            what = f"version {self.upto} of {found.uri} is not the one that was read"
            return InputReplaced, f"{what}: an older state was restored and written again"
        later = range(self.upto + 1, found.version + 1)
        if cleaned := found.log.missing_commits(later):
            what = f"{found.uri} was read up to version {self.upto}, but its log begins at"
            return LogCleaned, f"{what} {max(cleaned) + 1} now"
        return None, ""


def check_files(found: Foreign, commits: CommitRange, table: str) -> None:
    """Raise FeedVacuumed if the table's owner has deleted files that a span needs.

    Raises LogCleaned if the log no longer shows a version that has some of them.
    """
    for version in {part.version for part in commits.parts}:
        if not found.can_open(version):
            what = f"version {version} of {found.uri} can't be opened: its log was cleaned"
            raise LogCleaned(f"{table}: {what}", hint=_choice(table))
    paths = [path for part in commits.parts for path in part.paths]
    if missing := found.missing(paths):
        raise FeedVacuumed(
            f"{table}: {show_versions(commits.after, commits.upto)} of {found.uri} can't be read: "
            f"{len(missing)} of their files were deleted ({missing[0]})",
            hint=_choice(table),
        )


def check_columns(found: Foreign, version: int, names: Collection[str], table: str) -> None:
    """Raise QualityStop if a version lacks a declared column, by its owner's names."""
    have = found.columns(version)
    if lacking := [name for name in names if name not in have]:
        raise QualityStop(
            f"{table}: {found.uri} at version {version} lacks the declared column(s) "
            f"{', '.join(lacking)}; it has {', '.join(have)}",
            hint="nothing was committed; if its owner has dropped or renamed them, correct the "
            f"source's `schema` or `names`, and run `sluice rebuild {table}`",
        )


def range_of(noted: str) -> tuple[str, int, int] | None:
    """Return the table and the versions (after, upto] that a note's batch has read."""
    try:
        plain: Mapping[str, Any] = json.loads(noted)
        return str(plain["table"]), *map(int, plain["versions"])  # type: ignore[return-value]
    except (ValueError, TypeError, KeyError):
        return None


def show_versions(after: int, upto: int) -> str:
    """Return versions in words."""
    is_one = after < 0 or upto - after == 1
    return f"version {upto}" if is_one else f"versions {after + 1} to {upto}"


def _choice(table: str) -> str:
    return (
        f"nothing was changed; `sluice rebuild {table} --as-landed` reads the table as it is now, "
        f"and only what differs goes on; `sluice rebuild {table} --from latest` keeps the rows, "
        "follows the table from now on and notes the gap"
    )
