"""A table with keys from everywhere, for tests of upkeep in pieces."""

import shutil
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from tests.delta.tables import ID_AND_V, WITH_P, Small, a_position

from sluice.changes import CHANGE, Direction
from sluice.delta.log import Action, Log
from sluice.delta.reading.local import read_where
from sluice.delta.upkeep import pieces, rewriting
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.upkeep.rewriting import may_merge, merge
from sluice.delta.writing.commit import commit_arrow
from sluice.delta.writing.own_commits import writer_properties
from sluice.limits import Limits

FILE = 5_000
LIMITS = Limits(
    merged_bytes=-1,
    marked_share=1_000,
    file_rows=FILE,
    slice_file_rows=FILE,
    piece_bytes=250_000,
    small_files=4,
)
BY_ID = (Direction("id"),)
Rows = dict[int, str]


class Table:
    """A table with keys from everywhere, and what it holds: texts that hardly compress.

    `parts`: partitions, if there are several; neighbours are in different ones.
    """

    def __init__(self, folder: Path, limits: Limits = LIMITS, parts: int = 1):
        self.limits, self.parts = limits, parts
        self.stored = Small.create(
            folder,
            ID_AND_V if parts == 1 else WITH_P,
            ["id"],
            partial(commit_arrow, limits=limits),  # type: ignore[arg-type]
            partition_by=["p"] if parts > 1 else [],
        )
        self.drawn = np.random.default_rng(1)
        self.rows: Rows = {}
        self.then: dict[int, Rows] = {}

    @property
    def uri(self) -> str:
        return self.stored.uri

    def copied(self, folder: Path) -> Self:
        """Return the same table in another folder, where it goes its own way."""
        other = copy(self)
        uri = shutil.copytree(self.uri, folder / Path(self.uri).name)
        other.stored = replace(self.stored, uri=str(uri))
        other.drawn, other.then = deepcopy(self.drawn), {**self.then}
        return other

    def fill(self, count: int) -> None:
        """Even keys, in files of neighbours."""
        for first in range(0, count, FILE):
            self.change(range(2 * first, 2 * min(count, first + FILE), 2))

    def change(self, come: Any, gone: Any = ()) -> None:
        kinds = {**dict.fromkeys(map(int, come), ""), **dict.fromkeys(map(int, gone), "delete")}
        for key, kind in kinds.items():
            kinds[key] = kind or ("update" if key in self.rows else "insert")
        drawn = self.drawn.bytes(6 * len(kinds)).hex()
        values = {key: drawn[12 * n : 12 * n + 12] for n, key in enumerate(kinds)}
        ids = pa.array(list(kinds), pa.int32())
        rows = pa.table({"id": ids, "v": list(values.values()), CHANGE: list(kinds.values())})
        if self.parts > 1:
            rows = rows.append_column("p", pa.array(np.array(ids) // 2 % self.parts, pa.int32()))
        at = self.stored.head
        done = commit_arrow(at, rows, ["id"], a_position(at.next_batch), self.limits)
        left = {k: v for k, v in {**self.rows, **values}.items() if kinds.get(k) != "delete"}
        self.rows = left
        self.then[done.version] = left

    def append(self, rows: pa.Table) -> None:
        """Add rows as they are, and their columns, in one file."""
        told = {"userMetadata": a_position(self.stored.head.next_batch).to_json()}
        write_deltalake(
            self.uri,
            rows,
            mode="append",
            schema_mode="merge",
            commit_properties=CommitProperties(custom_metadata=told),
            writer_properties=writer_properties(rows.schema),
        )

    def scatter(self, count: int, gone: int = 0) -> None:
        """Change rows everywhere: half of those that come are new."""
        known = self.drawn.choice(sorted(self.rows), count // 2 + gone, replace=False)
        new = 2 * self.drawn.choice(2 * FILE, count - count // 2, replace=False) + 1
        come = {*known[gone:].tolist(), *new.tolist()}
        self.change(come - {*known[:gone].tolist()}, known[:gone])

    @property
    def filing(self) -> Filing:
        return Filing(self.stored.head, self.limits, BY_ID, "p" if self.parts > 1 else None)

    def upkeep(self) -> int:
        assert may_merge(self.filing)
        return merge(self.filing, self.filing.slices, "compact")[0]

    def versions_since(self, version: int) -> range:
        return range(version + 1, self.stored.head.version + 1)

    def check(self) -> None:
        rows = read_where(self.uri, self.stored.head.version, ["id", "v"])
        assert rows.num_rows == len(self.rows)
        assert dict(zip(*rows.to_pydict().values(), strict=True)) == self.rows


def added(table: Table, version: int) -> list[Action]:
    """Files that a commit has written."""
    actions = Log(table.uri).actions(version)
    known = {a["remove"]["path"] for a in actions if "remove" in a}
    return [a["add"] for a in actions if "add" in a and a["add"]["path"] not in known]


def removed(table: Table, version: int) -> set[str]:
    actions = Log(table.uri).actions(version)
    back = {a["add"]["path"] for a in actions if "add" in a}
    return {a["remove"]["path"] for a in actions if "remove" in a} - back


def data(table: Table, path: str) -> int:
    """Bytes of a file's columns."""
    footer = pq.read_metadata(Path(table.uri, path))
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    return sum(g.column(i).total_compressed_size for g in groups for i in range(g.num_columns))


def paths(table: Table) -> set[str]:
    return {Path(uri).name for uri in DeltaTable(table.uri).file_uris()}


def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the bytes that each piece has read before it writes."""
    read, held = list[int](), [0]
    original = pq.ParquetFile.read_row_groups

    def noted(self: pq.ParquetFile, groups: Any, columns: Any = None, **options: Any) -> pa.Table:
        if "v" in columns:
            sizes = [self.metadata.row_group(i) for i in groups]
            held[0] += sum(g.column(i).total_compressed_size for g in sizes for i in range(2))
        return original(self, groups, columns=columns, **options)

    def piece(place: str, uri: str) -> None:
        if place == "merging":
            read.append(held[0])
            held[0] = 0

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noted)
    monkeypatch.setattr(rewriting, "passing", piece)
    monkeypatch.setattr(pieces, "_width", lambda *_: 0)  # a sample, before the pieces
    return read
