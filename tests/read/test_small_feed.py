"""Rows that versions of a table have removed and added, if they are few."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.read.tables import write

from sluice.limits import Limits
from sluice.read.scan import small_feed

SCHEMA = pa.schema([("id", pa.int32()), ("v", pa.string())])


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Four versions: two rows, one more, one updated, one deleted."""
    uri = str(tmp_path / "table")
    write(uri, pa.table({"id": [1, 2], "v": ["a", "b"]}, schema=SCHEMA))
    write(uri, pa.table({"id": [3], "v": ["c"]}, schema=SCHEMA))
    DeltaTable(uri).update({"v": "'z'"}, predicate="id = 2")
    DeltaTable(uri).delete("id = 1")
    return uri


CHANGES: list[tuple[list[tuple[int, str]], list[tuple[int, str]]]] = [
    ([], [(1, "a"), (2, "b")]),
    ([], [(3, "c")]),
    ([(2, "b")], [(2, "z")]),
    ([(1, "a")], []),
]


def rows_of(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.parametrize("after", range(4))
def test_it_has_the_changes_of_the_versions_behind_one(uri: str, after: int) -> None:
    for upto in range(after, 4):
        found = small_feed("t", uri, after, upto, ["id", "v"], Limits())
        assert found is not None
        for table, side in zip(found, (0, 1), strict=True):
            changed = (row for change in CHANGES[after + 1 : upto + 1] for row in change[side])
            assert (table.schema, rows_of(table)) == (SCHEMA, sorted(changed))
        only = small_feed("t", uri, after, upto, ["v"], Limits()) or ()
        assert [table.column_names for table in only] == [["v"], ["v"]]


def test_it_is_none_if_the_feed_is_large_or_lost(uri: str, tmp_path: Path) -> None:
    assert small_feed("t", uri, 0, 3, ["id"], Limits(computed_here_bytes=0)) is None
    kept = {Path(path).name for path in DeltaTable(uri).file_uris()}
    for file in (tmp_path / "table").rglob("*.parquet"):
        if file.name not in kept:
            file.unlink()
    assert small_feed("t", uri, 1, 3, ["id"], Limits()) is None
