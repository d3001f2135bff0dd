"""A table's log on disk: the actions of one commit, and which commits still exist.

Delta's own readers show what a table is. Only the log shows what one commit did, and whether the
files that it names still exist. Nothing is kept open: each question reads the log again.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from pyarrow.fs import FileSelector, FileType

from sluice.delta.places.delta_rs import files_below
from sluice.delta.places.folders import LOG

Action = dict[str, Any]


class Log:
    """Log of the table at `uri`."""

    def __init__(self, uri: str):
        self._files = files_below(uri)

    def actions(self, version: int) -> list[Action]:
        """Return the actions of a commit. Raises FileNotFoundError if it was cleaned."""
        with self._files.open_input_stream(_commit(version)) as stream:
            lines = stream.read().splitlines()  # of bytes: statistics may hold other ends of lines
        return [json.loads(line) for line in lines if line]

    def metadata(self, version: int) -> str | None:
        """Return the `userMetadata` of a commit. Raises FileNotFoundError if it was cleaned."""
        infos = (a["commitInfo"] for a in self.actions(version) if "commitInfo" in a)
        return next((info.get("userMetadata") for info in infos), None)

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
        infos = [a["commitInfo"] for a in self.actions(version) if "commitInfo" in a]
        return str(infos[0].get("operation")) if infos else "unknown"

    def named_files(self) -> Iterator[str]:
        """Yield every file that a commit of the log adds or removes, in its data or its feed."""
        listed = self._files.get_file_info(FileSelector(LOG, allow_not_found=True))
        names = (info.base_name for info in listed if info.base_name.endswith(".json"))
        for version in (int(name[:20]) for name in names if name[:20].isdigit()):
            for action in self.actions(version):
                file = action.get("add") or action.get("remove") or action.get("cdc") or {}
                if "path" in file:
                    yield unquote(file["path"])

    def _exists(self, paths: list[str]) -> bool:
        found = self._files.get_file_info(paths)
        return all(info.type == FileType.File for info in found)


def feed_files(actions: list[Action]) -> list[Action]:
    """Return the files of a commit's change feed: its change data, else those added and removed."""
    changes = [a["cdc"] for a in actions if "cdc" in a]
    return changes or list(_data_files(actions))


def _data_files(actions: list[Action]) -> Iterator[Action]:
    files = (a.get("add") or a.get("remove") or {} for a in actions)
    return (file for file in files if file.get("dataChange"))


def _commit(version: int) -> str:
    return f"_delta_log/{version:020d}.json"
