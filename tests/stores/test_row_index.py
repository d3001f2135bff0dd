"""Rows of tables in a store are looked up in this machine's index, after the second search."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.delta.tables import ID_AND_V, Change, Small, by_marking
from tests.support.indexing import TAKE_AWAY, index_all
from tests.support.proxy import Proxy
from tests.support.stores import Store, using

from sluice.delta.reading import row_index
from sluice.delta.reading.searching import SearchedVersion
from sluice.delta.upkeep import erasure
from sluice.limits import Limits
from sluice.read.keyed import KeyedTable
from sluice.read.snapshot import Snapshot

FILES, EACH = 4, 25


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "rows"


@pytest.fixture(autouse=True)
def opened(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the rows that come from an index."""
    return index_all(monkeypatch, cache.parent)


@pytest.fixture
def table(store: Store) -> Small:
    """Keys 0 to 99 scattered over four files."""
    lake = store.uri(f"{store.place()}/lake/shop")
    table = Small.create(lake, ID_AND_V, ["id"], by_marking(None))  # type: ignore[arg-type]
    for first in range(FILES):
        keys = range(first, FILES * EACH, FILES)
        table.commit(*[("insert", {"id": i, "v": f"v{i}"}) for i in keys])
    return table


def search(table: Small, *ids: int | None) -> list[tuple[int, str]]:
    searched = SearchedVersion(table.uri, table.head.version, Limits())
    found = searched.find_rows([{"id": pa.chunked_array([pa.array(ids, pa.int32())])}])
    assert found is not None
    return sorted((row["id"], row["v"]) for row in found.to_pylist())


def files_in(cache: Path) -> list[Path]:
    return [path for path in sorted(cache.rglob("*")) if path.is_file() and path.stat().st_size]


def test_lookups_open_no_data_file(table: Small, store: Store, proxied: Proxy) -> None:
    """Nor does `get`, nor the commit that marks what was looked up."""
    wanted = [(3, "v3"), (50, "v50"), (97, "v97")]
    assert [search(table, 3, 50, 97, 200) for _ in range(2)] == [wanted] * 2
    with using(store.environ(proxied.endpoint)):
        proxied.clear()
        assert search(table, 3, 50, 97, 200) == wanted
        table.commit(("update", {"id": 50, "v": "new"}), ("delete", {"id": 3, "v": "v3"}))
        asked = [r for r in proxied.requests if "/part-" in r.name and r.method != "PUT"]
        assert asked == []
        keyed = KeyedTable(Snapshot.open("t", table.uri), ("id",))
        assert [keyed.get(i) for i in (97, 3)] == [{"id": 97, "v": "v97"}, None]
        asked = [r for r in proxied.requests if "/part-" in r.name and r.method == "GET"]
    assert len({r.name for r in asked}) <= 1  # the new file has no index yet
    assert search(table, 3, 50, 97, 200) == [(50, "new"), (97, "v97")]


def test_rows_are_those_of_a_plain_table(
    table: Small, opened: Callable[[], int], cache: Path
) -> None:
    """Random changes, and searches of which some find an index, some none and some a broken one."""
    chance, rows = random.Random(5), {i: f"v{i}" for i in range(FILES * EACH)}
    for number in range(12):
        keys = chance.sample(range(120), 10)
        for _ in range(2):
            assert search(table, *keys) == sorted((i, rows[i]) for i in keys if i in rows)
        changes: list[Change] = []
        for i in keys[: 1 + number % 5]:
            change = chance.choice(["update", "delete"]) if i in rows else "insert"
            old = rows.pop(i, "")
            if change == "delete":
                changes.append((change, {"id": i, "v": old}))
            else:
                rows[i] = f"{number}"
                changes.append((change, {"id": i, "v": rows[i]}))
        table.commit(*changes)
        if number == 6:
            for path in files_in(cache):
                path.write_bytes(path.read_bytes()[:-9])
            row_index._open.clear()
    assert opened() > 100
    assert list(erasure.index_faults(table.uri)) == []


@pytest.mark.parametrize("take_away", TAKE_AWAY)
def test_no_copy_is_left_of_what_is_taken_away(
    table: Small, cache: Path, take_away: Callable[[str], None]
) -> None:
    assert search(table, 3) == search(table, 3)
    assert len(list(cache.rglob("*.rows"))) == FILES
    take_away(table.uri)
    assert not files_in(cache)


def test_what_is_kept_of_files_that_are_gone_is_removed_a_day_later(
    table: Small, cache: Path
) -> None:
    assert search(table, 3) == search(table, 3)
    one, *others = sorted(cache.rglob("*.rows"))
    gone, new = (one.with_name(f"part-{name}.rows") for name in ("gone", "new"))
    for path in (gone, new):
        path.write_bytes(one.read_bytes())
    os.utime(gone, (0, 0))
    one.unlink()  # so that a search builds it again
    row_index._open.clear()
    assert search(table, 3) == [(3, "v3")]
    assert sorted(cache.rglob("*.rows")) == sorted([one, new, *others])
