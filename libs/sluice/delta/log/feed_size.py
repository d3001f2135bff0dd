"""The amount of data to read between two versions, from the log alone."""

import json
from collections.abc import Container
from dataclasses import dataclass

from deltalake import DeltaTable

from sluice.delta.log.actions import Action, Log, feed_files
from sluice.delta.log.active import active_files
from sluice.delta.log.opened import opened

MANY_COMMITS = 200


@dataclass(frozen=True)
class FeedSize:
    """Bytes and files of data to read; `rows` is None if the log does not report them."""

    bytes: int = 0
    files: int = 0
    rows: int | None = 0

    def __add__(self, other: "FeedSize") -> "FeedSize":
        rows = None if self.rows is None or other.rows is None else self.rows + other.rows
        return FeedSize(self.bytes + other.bytes, self.files + other.files, rows)


def feed_size(uri: str, after: int, upto: int) -> FeedSize:
    """Return the size of the change feed of versions (after, upto].

    The log must hold them: see `check_feed`.
    """
    if upto - after > MANY_COMMITS:
        return table_size(uri, upto)
    log = Log(uri)
    sizes = (_commit_size(log.actions(version)) for version in range(after + 1, upto + 1))
    return sum(sizes, FeedSize())


def only_inserts(uri: str, after: int, upto: int) -> bool:
    """True if the change feed of versions (after, upto] surely holds nothing but new rows."""
    if upto - after > MANY_COMMITS:
        return False
    log = Log(uri)
    commits = (log.actions(version) for version in range(after + 1, upto + 1))
    return not any(_takes_away(action) for actions in commits for action in actions)


def _takes_away(action: Action) -> bool:
    """True if the action may remove rows; compaction and sealing only put them into other files."""
    return "cdc" in action or bool(action.get("remove", {}).get("dataChange"))


def table_size(uri: str, version: int) -> FeedSize:
    """Return the size of the table as of a version."""
    return size_of(opened(uri, version))


def size_of(table: DeltaTable, without: Container[str] = ()) -> FeedSize:
    """Return the size of a table that is already open; `without` some of its files."""
    columns = active_files(table).select(["path", "size_bytes", "num_records"])
    files = [f for f in columns.to_pylist() if f["path"] not in without]
    sizes, rows = [f["size_bytes"] for f in files], [f["num_records"] for f in files]
    return FeedSize(sum(sizes), len(sizes), None if None in rows else sum(rows))


def _commit_size(actions: list[Action]) -> FeedSize:
    files = feed_files(actions)
    rows = [_rows(f) for f in files]
    known = [n for n in rows if n is not None]
    total = sum(known) if len(known) == len(rows) else _changed(actions)
    return FeedSize(sum(f.get("size") or 0 for f in files), len(files), total)


def _changed(actions: list[Action]) -> int | None:
    """Return the rows of a commit's change data by its metrics; None if it lacks either."""
    infos = (a["commitInfo"].get("operationMetrics") or {} for a in actions if "commitInfo" in a)
    metrics = next(infos, {})
    names = ("inserted", "updated", "deleted")
    counts = [
        metrics.get(f"num_target_rows_{name}", metrics.get(f"numTargetRows{name.title()}"))
        for name in names
    ]
    known = [int(count) for count in counts if count is not None]
    if len(known) < len(names) or not any("cdc" in action for action in actions):
        return None
    inserted, updated, deleted = known
    return inserted + 2 * updated + deleted


def _rows(file: Action) -> int | None:
    """Return the rows of an added file; None for other files, which report none."""
    statistics = json.loads(file.get("stats") or "{}")
    count = statistics.get("numRecords")
    return None if count is None else int(count)
