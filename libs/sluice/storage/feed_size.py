"""How much there is to read between two versions, from the log alone."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

MANY_COMMITS = 200


@dataclass(frozen=True)
class FeedSize:
    """Bytes and files of data to read; `rows` is None where the log doesn't say."""

    bytes: int = 0
    files: int = 0
    rows: int | None = 0

    def __add__(self, other: "FeedSize") -> "FeedSize":
        rows = None if self.rows is None or other.rows is None else self.rows + other.rows
        return FeedSize(self.bytes + other.bytes, self.files + other.files, rows)


def feed_size(uri: str, after: int, upto: int) -> FeedSize:
    """The change feed of versions (after, upto]."""
    if upto - after > MANY_COMMITS:
        return table_size(uri, upto)
    filesystem = PyFileSystem(DeltaStorageHandler(uri))
    total = FeedSize()
    for version in range(after + 1, upto + 1):
        total += _commit_size(filesystem, version)
    return total


def table_size(uri: str, version: int) -> FeedSize:
    """The table as of a version."""
    actions = DeltaTable(uri, version=version).get_add_actions(flatten=True)
    files = pa.table(actions).to_pydict()
    rows = files.get("num_records") or []
    known = all(n is not None for n in rows)
    sizes = files["size_bytes"]
    return FeedSize(sum(sizes), len(sizes), sum(rows) if known else None)


def _commit_size(filesystem: PyFileSystem, version: int) -> FeedSize:
    actions = list(_actions(filesystem, version))
    cdc = [a["cdc"] for a in actions if "cdc" in a]
    if cdc:
        return FeedSize(sum(c["size"] for c in cdc), len(cdc), None)
    adds = [a["add"] for a in actions if a.get("add", {}).get("dataChange")]
    removes = [a["remove"] for a in actions if a.get("remove", {}).get("dataChange")]
    rows = [json.loads(a["stats"]).get("numRecords") if a.get("stats") else None for a in adds]
    known = not removes and all(n is not None for n in rows)
    size = sum(a["size"] for a in adds) + sum(r.get("size") or 0 for r in removes)
    return FeedSize(size, len(adds) + len(removes), sum(rows) if known else None)


def _actions(filesystem: PyFileSystem, version: int) -> Iterator[dict[str, Any]]:
    with filesystem.open_input_stream(f"_delta_log/{version:020d}.json") as stream:
        for line in stream.read().decode().splitlines():
            if line:
                yield json.loads(line)
