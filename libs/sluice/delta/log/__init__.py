"""The log: versions of a table, what each consists of, and the position that it records.

Here are the actions of commits, their effects on rows, and which commits still exist.

Delta's own readers show what a table is. Only the log shows what one commit did, and whether the
files that it names still exist. Nothing is kept open: each question reads the log again.

Of a commit with change data, that is read. In other commits, added files add rows and removed
files remove them. Files added and removed within a range of commits cancel out, so they need not
exist any more. A commit that only moves rows, such as OPTIMIZE, does nothing to them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyarrow.fs import FileSelector, FileType

from sluice.delta.places.delta_rs import files_below
from sluice.delta.places.folders import LOG
from sluice.delta.places.lake_layout import DamagedLog

Action = dict[str, Any]


def parse_actions(uri: str, version: int, commit: bytes) -> list[Action]:
    """Return the actions of a commit from its file. Raises DamagedLog if it can't be read."""
    lines = commit.splitlines()  # of bytes: statistics may hold other ends of lines
    try:
        return [json.loads(line) for line in lines if line]
    except ValueError as error:
        raise DamagedLog(uri, f"version {version}: {error}") from None


class Log:
    """Log of the table at `uri`."""

    def __init__(self, uri: str):
        self._uri, self._files = uri, files_below(uri)

    def actions(self, version: int) -> list[Action]:
        """Return the actions of a commit. Raises FileNotFoundError if it was cleaned, DamagedLog
        if it can't be read.
        """
        with self._files.open_input_stream(_commit(version)) as stream:
            return parse_actions(self._uri, version, stream.read())

    def metadata(self, version: int) -> str | None:
        """Return the `userMetadata` of a commit. Raises FileNotFoundError if it was cleaned."""
        return self._info(version).get("userMetadata")

    def missing_commits(self, versions: Iterable[int]) -> list[int]:
        """Return the versions whose commits were cleaned."""
        return [v for v in versions if not self._exists([_commit(v)])]

    def missing_files(self, version: int) -> list[str]:
        """Return the deleted files that the change feed of `version` needs."""
        paths = [unquote(a["path"]) for a in feed_files(self.actions(version))]
        return [path for path in paths if ":" not in path and not self._exists([path])]

    def has_files(self, paths: Iterable[str]) -> bool:
        """True if all of these files of the table exist."""
        return self._exists([unquote(path) for path in paths if ":" not in path])

    def changes_data(self, version: int) -> bool:
        """True if a commit adds or removes rows (compaction, vacuum and settings don't)."""
        return any(_data_files(self.actions(version)))

    def changes_schema(self, version: int) -> bool:
        """True if a commit sets the table's columns (or its settings)."""
        return any("metaData" in action for action in self.actions(version))

    def ends_feed(self, version: int) -> bool:
        """True if a commit leaves the table without a change feed."""
        settings = [
            a["metaData"].get("configuration") or {}
            for a in self.actions(version)
            if "metaData" in a
        ]
        return any(s.get("delta.enableChangeDataFeed") != "true" for s in settings)

    def operation(self, version: int) -> str:
        """Return a commit's operation, such as `WRITE` or `RESTORE`."""
        return str(self._info(version).get("operation", "unknown"))

    def named_files(self) -> Iterator[str]:
        """Yield every file that a commit of the log adds or removes, in its data or its feed."""
        listed = self._files.get_file_info(FileSelector(LOG, allow_not_found=True))
        names = (info.base_name for info in listed if info.base_name.endswith(".json"))
        for version in (int(name[:20]) for name in names if name[:20].isdigit()):
            for action in self.actions(version):
                file = action.get("add") or action.get("remove") or action.get("cdc") or {}
                if "path" in file:
                    yield unquote(file["path"])

    def _info(self, version: int) -> Action:
        return next((a["commitInfo"] for a in self.actions(version) if "commitInfo" in a), {})

    def _exists(self, paths: list[str]) -> bool:
        found = self._files.get_file_info(paths)
        return all(info.type == FileType.File for info in found)


def feed_files(actions: list[Action]) -> list[Action]:
    """Return the files of a commit's change feed: its change data, else those added and removed."""
    changes = [a["cdc"] for a in actions if "cdc" in a]
    return changes or list(_data_files(actions))


def count_records(file: Action) -> int | None:
    """Return the rows of an added file; None for other files, which report none."""
    count = json.loads(file.get("stats") or "{}").get("numRecords")
    return None if count is None else int(count)


def _data_files(actions: list[Action]) -> Iterator[Action]:
    files = (a.get("add") or a.get("remove") or {} for a in actions)
    return (file for file in files if file.get("dataChange"))


def _commit(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


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
    def removes(self) -> bool:
        """True if it changes or deletes rows."""
        return any("remove" in a and a["remove"].get("dataChange") for a in self.actions)

    @property
    def added(self) -> WeightedFiles:
        """The files whose rows it appends."""
        files = tuple(a["add"] for a in self.actions if "add" in a and a["add"].get("dataChange"))
        return WeightedFiles(self.version, 1, files, sum(int(f.get("size") or 0) for f in files))

    @property
    def rows(self) -> int:
        """Lower bound of its added or removed rows: removed files need not have counts."""
        return sum(count_records(file) or 0 for file in feed_files(list(self.actions)))

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

    was_there: bool
    is_there: bool
    at: int  # a version that contains it
    weight: int = 0
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
        removed = [(-1, a["remove"]) for a in commit.actions if "remove" in a]
        added = [(1, a["add"]) for a in commit.actions if "add" in a]
        for weight, file in (*removed, *added):
            vector = file.get("deletionVector") or {}
            parts = (vector.get(name) for name in ("storageType", "pathOrInlineDv", "offset"))
            marked = unquote(file["path"]), json.dumps([*parts])
            at = commit.version if weight > 0 else commit.version - 1
            life = lives.setdefault(marked, _Life(weight < 0, weight > 0, at))
            life.is_there, life.at = weight > 0, at
            if file.get("dataChange") and not commit.has_feed:
                life.weight += weight
                life.file = life.file or file
    return lives.values()
