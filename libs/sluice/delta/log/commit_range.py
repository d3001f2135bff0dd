"""Ranges of a log's commits, and their effects on the table's rows.

For a commit with change data, that is read. For other commits, added files add rows and removed
files remove them. Files added and removed within a range cancel out, so they need not exist any
more. A commit that only moves rows, such as OPTIMIZE, does nothing to them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from sluice.delta.log.actions import Action, Log, feed_files

MarkedFile = tuple[str, str]  # a file by its path, with its deletion vector


@dataclass(frozen=True)
class WeightedFiles:
    """Files to read as of a version; all of its files if none are named.

    `weight`: 1 if their rows were added, -1 if removed; 0 for change data, which has it for each
    row.
    """

    version: int
    weight: int = 1
    files: tuple[Action, ...] = ()
    bytes: int = 0

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(unquote(file["path"]) for file in self.files)


@dataclass(frozen=True)
class CommitActions:
    """One commit of a log."""

    version: int
    actions: Sequence[Action]

    @property
    def has_feed(self) -> bool:
        return any("cdc" in action for action in self.actions)

    @property
    def rows(self) -> int:
        """Lower bound of its added or removed rows: removed files need not have counts."""
        return sum(_records(file) for file in feed_files(list(self.actions)))

    @property
    def bytes(self) -> int:
        return sum(int(file.get("size") or 0) for file in feed_files(list(self.actions)))

    @property
    def replaces(self) -> str:
        """Operation that replaced all rows, or ''."""
        info: dict[str, Any] = next(
            (a["commitInfo"] for a in self.actions if "commitInfo" in a), {}
        )
        name, how = str(info.get("operation")), info.get("operationParameters") or {}
        is_overwrite = str(how.get("mode")).lower() == "overwrite"
        return name if is_overwrite or "RESTORE" in name or "REPLACE" in name else ""


@dataclass(frozen=True)
class CommitRange:
    """The commits (after, upto] of a log; `parts`: what to read of them."""

    after: int
    upto: int
    parts: tuple[WeightedFiles, ...] = ()
    replaced: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


def commit_ranges(
    log: Log, after: int, upto: int, max_rows: int, max_bytes: int
) -> Iterator[CommitRange]:
    """Yield the commits (after, upto] as ranges, each within the bounds."""
    some, rows, size = list[CommitActions](), 0, 0
    for version in range(after + 1, upto + 1):
        commit = CommitActions(version, log.actions(version))
        rows, size = rows + commit.rows, size + commit.bytes
        if some and (rows > max_rows or size > max_bytes):
            yield _range(some)
            some, rows, size = [], commit.rows, commit.bytes
        some.append(commit)
    if some:
        yield _range(some)


def _range(commits: Sequence[CommitActions]) -> CommitRange:
    words = ((c.version, c.replaces) for c in commits)
    return CommitRange(
        commits[0].version - 1,
        commits[-1].version,
        tuple(_parts(commits)),
        tuple(f"version {version} ({word})" for version, word in words if word),
    )


@dataclass
class _Life:
    """A file within a range: its net addition or removal, and a version that contains it."""

    weight: int = 0
    was_there: bool = False
    is_there: bool = False
    at: int = 0  # a version that contains it
    file: Action | None = None


def _parts(commits: Sequence[CommitActions]) -> Iterator[WeightedFiles]:
    after, upto = commits[0].version - 1, commits[-1].version
    found: dict[tuple[int, int], list[Action]] = defaultdict(list)
    for life in _lives(commits):
        if not life.weight or not life.file:
            continue
        at = upto if life.is_there else after if life.was_there else life.at
        found[at, life.weight].append(life.file)
    for commit in commits:
        if commit.has_feed:
            found[commit.version, 0] = feed_files(list(commit.actions))
    for (version, weight), files in sorted(found.items()):
        size = sum(int(file.get("size") or 0) for file in files)
        yield WeightedFiles(version, weight, tuple(files), size)


def _lives(commits: Sequence[CommitActions]) -> Iterable[_Life]:
    lives: dict[MarkedFile, _Life] = {}
    for commit in commits:
        for weight, file in _moved(commit.actions):
            life = lives.setdefault(_whole(file), _Life(was_there=weight < 0))
            life.is_there = weight > 0
            life.at = commit.version if weight > 0 else commit.version - 1
            if file.get("dataChange") and not commit.has_feed:
                life.weight += weight
                life.file = life.file or file
    return lives.values()


def _moved(actions: Sequence[Action]) -> Iterator[tuple[int, Action]]:
    """Yield the removed files, then the added ones."""
    yield from ((-1, a["remove"]) for a in actions if "remove" in a)
    yield from ((1, a["add"]) for a in actions if "add" in a)


def _whole(file: Action) -> MarkedFile:
    vector = file.get("deletionVector") or {}
    names = ("storageType", "pathOrInlineDv", "offset")
    return unquote(file["path"]), json.dumps([vector.get(name) for name in names])


def _records(file: Action) -> int:
    return int(json.loads(file.get("stats") or "{}").get("numRecords") or 0)
