"""Rows that are looked up are those that a search finds, whatever has become of the index."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.delta.reading.searched import (
    COMPARED,
    SCHEMA,
    a_row,
    a_span,
    among,
    searched,
    shown,
    within,
    written,
)
from tests.delta.tables import ID_AND_V, LARGE, Small
from tests.support.forked import forked
from tests.support.indexing import TAKE_AWAY, index_all, index_small_tables

from sluice.delta.reading import mapped_file, row_index, searching
from sluice.delta.reading.mapped_file import BLOCK, MappedFile, Unusable
from sluice.delta.reading.row_index import SortedCodes, codes_of
from sluice.delta.reading.searching import SearchedVersion
from sluice.delta.upkeep import erasure
from sluice.delta.writing.commit import commit_arrow
from sluice.errors import UsageError
from sluice.limits import Limits
from sluice.read.keyed import KeyedTable
from sluice.read.snapshot import Snapshot


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "rows"


@pytest.fixture(autouse=True)
def opened(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the rows that come from an index."""
    return index_all(monkeypatch, cache.parent)


@pytest.mark.parametrize("parts", [(), ("part",)])
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_a_search(
    tmp_path: Path, seed: int, parts: tuple[str, ...], opened: Callable[[], int]
) -> None:
    chance = random.Random(seed)
    uri = written(tmp_path, chance, parts)
    rows = DeltaTable(uri).to_pyarrow_table().to_pylist()
    found = 0
    for _ in range(12):
        wanted = [
            {
                name: [a_row(chance)[name] for _ in range(chance.randrange(1, 4))]
                for name in chance.sample(COMPARED, chance.randrange(1, 4))
            }
            for _ in range(chance.randrange(1, 3))
        ]
        matching = [row for row in rows if any(among(row, one) for one in wanted)]
        span = a_span(chance)
        nearer = [row for row in matching if within(row, span)]
        for _ in range(3):  # searched, indexed, looked up
            assert shown(searched(uri, wanted).to_pylist()) == shown(matching)
            assert shown(searched(uri, wanted, span).to_pylist()) == shown(nearer)
        found += len(matching)
    assert opened() > found


def test_altered_bytes_are_no_rows(
    tmp_path: Path, cache: Path, opened: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, wanted = written(tmp_path, random.Random(5), ()), [{"big": [10**12, None]}]
    right = shown(searched(uri, wanted).to_pylist())
    searched(uri, wanted)
    before, altered = opened(), 0
    for file in files_in(cache):
        whole = file.read_bytes()
        for place in range(0, len(whole), 397):  # a step that is no multiple of a value's width
            other = bytes([whole[place] ^ 1 << place % 8])
            file.write_bytes(whole[:place] + other + whole[place + 1 :])
            monkeypatch.setattr(row_index, "_open", {})
            assert shown(searched(uri, wanted).to_pylist()) == right
            file.write_bytes(whole)
            altered += 1
    assert altered > 50
    assert opened() > before


def files_in(cache: Path) -> list[Path]:
    return [path for path in sorted(cache.rglob("*")) if path.is_file() and path.stat().st_size]


def cut(cache: Path) -> None:
    for path in files_in(cache):
        path.write_bytes(path.read_bytes()[:-9])


def empty(cache: Path) -> None:
    for path in files_in(cache):
        path.write_bytes(b"")


def remove_one(cache: Path) -> None:
    files_in(cache)[0].unlink()


def swap(cache: Path) -> None:
    """Give each file's index to another, across two tables."""
    for kind in (".rows", ".codes"):
        files = [path for path in files_in(cache) if path.suffix == kind]
        held = [path.read_bytes() for path in files]
        for path, data in zip(files, [*held[1:], held[0]], strict=True):
            path.write_bytes(data)


@pytest.mark.parametrize("harm", [cut, empty, remove_one, swap, shutil.rmtree])
def test_a_broken_index_is_not_used(
    tmp_path: Path, cache: Path, harm: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(5)
    uris = [written(tmp_path / name, chance, ()) for name in "ab"]
    wanted = [{"big": [10**12, None], "text": ["é1", "é2", "é3", "é4", None]}]
    right = [shown(searched(uri, wanted).to_pylist()) for uri in uris]
    assert [shown(searched(uri, wanted).to_pylist()) for uri in uris] == right
    harm(cache)
    monkeypatch.setattr(row_index, "_open", {})
    for _ in range(2):
        assert [shown(searched(uri, wanted).to_pylist()) for uri in uris] == right


@pytest.mark.parametrize("harm", [None, cut])
def test_a_get_looks_its_row_up(
    tmp_path: Path,
    cache: Path,
    harm: Callable[[Path], None] | None,
    opened: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Null is a key, rows that a commit has marked are gone, and a file may have no index."""
    table = Small.create(tmp_path, ID_AND_V, ["id"], partial(commit_arrow, limits=LARGE))
    known: dict[int | None, str] = {n: f"v{n}" for n in (None, *range(40))}
    table.commit(*[("insert", {"id": n, "v": v}) for n, v in known.items()])
    table.commit(("update", {"id": 7, "v": "new"}), ("delete", {"id": 11, "v": "v11"}))
    for _ in range(2):
        version = DeltaTable(table.uri).version()
        wanted = {"id": pa.chunked_array([pa.array([1, 7], pa.int32())])}
        SearchedVersion(table.uri, version, Limits()).find_rows([wanted])
    table.commit(("update", {"id": 8, "v": "new"}), ("insert", {"id": 50, "v": "v50"}))
    expected = {**known, 7: "new", 8: "new", 50: "v50"}
    del expected[11]
    if harm:
        harm(cache)
        monkeypatch.setattr(row_index, "_open", {})
    before = opened()
    keyed = KeyedTable(Snapshot.open("t", table.uri), ("id",))
    for key in (None, *range(-1, 52)):
        row = keyed.get(key)
        assert row == ({"id": key, "v": expected[key]} if key in expected else None)
    assert opened() - before == (0 if harm else 39)


def placed(values: np.ndarray, wanted: np.ndarray) -> list[int]:
    return [int(at) for at in np.flatnonzero(np.isin(values, wanted))]


@pytest.mark.parametrize("rows", [1, 511, 512, 513, 1024, 6_000])
def test_values_of_several_blocks_are_found(tmp_path: Path, rows: int) -> None:
    """One of them fills more than a block, others lie beyond all or between two."""
    chance = np.random.default_rng(rows)
    values = 2 * chance.integers(0, rows, rows)
    values[chance.random(rows) < 0.3] = 2 * (rows // 3)
    row_index._write_codes(tmp_path / "codes", pa.array(values), {})
    for count in (0, 1, 2, 40, rows):
        for least, most in ((-3, 2 * rows + 3), (rows, rows + 9), (3 * rows, 4 * rows)):
            wanted = chance.integers(least, most, count)
            found = SortedCodes(MappedFile(tmp_path / "codes", {})).find(
                np.unique(codes_of(pa.array(wanted)))
            )
            assert found.tolist() == placed(values, wanted)


def test_only_blocks_that_may_have_a_value_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed byte is noticed in these, and in the first codes of all; no other matters."""
    values = np.random.default_rng(5).permutation(100_000)
    row_index._write_codes(tmp_path / "codes", pa.array(values), {})
    wanted = np.array([70_000, 70_001])
    read = list[int]()
    checksum = mapped_file._checksum
    monkeypatch.setattr(mapped_file, "_checksum", lambda d: read.append(len(d)) or checksum(d))
    whole = (tmp_path / "codes").read_bytes()
    noticed = 0
    for place in (None, *range(0, len(whole), 4001)):
        if place is not None:
            other = bytes([whole[place] ^ 1 << place % 8])
            (tmp_path / "codes").write_bytes(whole[:place] + other + whole[place + 1 :])
        read.clear()
        try:
            file = MappedFile(tmp_path / "codes", {})
            found = SortedCodes(file).find(np.unique(codes_of(pa.array(wanted))))
            assert found.tolist() == placed(values, wanted)
            assert sum(size == BLOCK for size in read) <= 5
        except Unusable:
            noticed += 1
    assert 2 <= noticed < 20


IO = Path("/proc/self/io")


@pytest.mark.skipif(not IO.exists(), reason="only Linux counts what a process reads from a disk")
def test_only_pages_that_are_used_come_from_the_disk(tmp_path: Path) -> None:
    """By itself, Linux reads 128 kB and more around each page, and waits for one after another."""
    path = tmp_path / "held"
    data = np.random.default_rng(5).integers(0, 256, 64_000_000, np.uint8)
    mapped_file.write_sealed(path, lambda file: file.write(data.data), lambda _: {})
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before, waits = read_from_disk()
    held = MappedFile(path, {})
    starts = np.arange(0, len(data), 500_000)
    held.check(starts, starts + 8)
    after, all_waits = read_from_disk()
    assert after - before < 1_000_000
    assert all_waits - waits < 40


def read_from_disk() -> tuple[int, int]:
    """Return the bytes that this process has read, and for how many pages it waited."""
    found = dict(line.split(": ") for line in IO.read_text().splitlines())
    return int(found["read_bytes"]), resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def test_equal_values_have_equal_codes_in_any_array() -> None:
    """Long texts, slices of arrays, and texts that differ in one place."""
    texts = ["", "a", "a" * 8, "a" * 9, "b" + "a" * 300, "a" * 300 + "b", "é" * 100, "x" * 257]
    whole = pa.array([None, *texts, None, *texts])
    codes = codes_of(whole).tolist()
    assert codes[1:9] == codes[10:] == codes_of(whole.slice(10)).tolist()
    assert codes[0] == codes[9]
    assert len({*codes}) == 9


@pytest.fixture
def indexed(tmp_path: Path, cache: Path) -> str:
    """A table whose files are all indexed, by one column."""
    uri = written(tmp_path, random.Random(5), ())
    for _ in range(2):
        searched(uri, WANTED)
    assert len(list(cache.rglob("*.rows"))) == 4
    return uri


WANTED = [{"big": [10**12, None]}]


def test_each_search_indexes_half_of_what_is_left(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, kept = str(tmp_path / "t"), []
    for _ in range(8):
        write_deltalake(uri, pa.table({"big": range(50)}), mode="append")
    monkeypatch.setattr(searching, "AT_ONCE_BYTES", 1)
    for _ in range(5):
        searched(uri, [{"big": [3]}])
        kept.append(len(list(cache.rglob("*.rows"))))
    assert kept == [0, 4, 6, 7, 8]


def test_columns_are_kept_that_were_read(
    tmp_path: Path, cache: Path, opened: Callable[[], int]
) -> None:
    """A search of other columns keeps these, too; those that no file has yet are null."""
    uri = written(tmp_path, random.Random(5), ())
    rows = DeltaTable(uri).to_pyarrow_table().to_pylist()
    every = [row for row in rows if among(row, WANTED[0])]
    sizes = []
    for columns in (["small"], ["small", "text", "tags"], ["small"], SCHEMA.names):
        before = opened()
        chosen = [{name: row[name] for name in columns} for row in every]
        for _ in range(3):
            found = searched(uri, WANTED, columns=columns)
            assert shown(found.to_pylist()) == shown(chosen)
            sizes.append(sum(path.stat().st_size for path in cache.rglob("*.rows")))
        assert opened() > before
    assert 0 < 4 * sizes[1] < sizes[-1]
    write_deltalake(
        uri, pa.table({"big": [10**12], "added": [7]}), mode="append", schema_mode="merge"
    )
    for _ in range(3):
        found = searched(uri, WANTED, columns=["added"])
        assert sorted(found["added"].to_pylist(), key=str) == [7, *[None] * len(every)]


@pytest.mark.parametrize("take_away", TAKE_AWAY)
def test_no_copy_is_left_of_what_is_taken_away(
    indexed: str, cache: Path, take_away: Callable[[str], None]
) -> None:
    assert files_in(cache)
    take_away(indexed)
    assert not files_in(cache)


def test_what_is_kept_of_files_that_are_gone_is_removed(indexed: str, cache: Path) -> None:
    write_deltalake(indexed, DeltaTable(indexed).to_pyarrow_table(), mode="overwrite")
    DeltaTable(indexed).vacuum(0, dry_run=False, enforce_retention_duration=False)
    searched(indexed, WANTED)
    assert len(list(cache.rglob("*.rows"))) == 1


def test_upkeep_indexes_what_was_searched(
    tmp_path: Path, opened: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = written(tmp_path, random.Random(5), ())
    right = shown(searched(uri, WANTED).to_pylist())
    version = DeltaTable(uri).version()
    monkeypatch.setattr(searching, "WORTH_BYTES", 10**9)
    assert searching.index_files(uri, version) == 0, "it is small"
    monkeypatch.setattr(searching, "WORTH_BYTES", 0)
    assert [searching.index_files(uri, version) for _ in range(2)] == [4, 0]
    assert opened() == 0
    assert shown(searched(uri, WANTED).to_pylist()) == right
    assert opened() >= len(right)
    write_deltalake(uri, pa.table({"big": [10**12]}), mode="append", schema_mode="merge")
    assert [searching.index_files(uri, version + n) for n in (0, 1, 1)] == [0, 1, 0]


def test_upkeep_indexes_nothing_of_a_table_that_was_not_searched(
    tmp_path: Path, cache: Path
) -> None:
    uri = written(tmp_path, random.Random(5), ())
    assert searching.index_files(uri, DeltaTable(uri).version()) == 0
    assert not cache.exists()


def test_a_full_disk_gets_no_index(
    tmp_path: Path, cache: Path, opened: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = written(tmp_path, random.Random(5), ())
    right = shown(searched(uri, WANTED).to_pylist())
    full = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(row_index.shutil, "disk_usage", lambda _: full)
    assert shown(searched(uri, WANTED).to_pylist()) == right
    assert not [*cache.rglob("*.rows")]
    assert opened() == 0


def test_the_least_used_tables_make_room(
    indexed: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = written(tmp_path / "other", random.Random(6), ())
    size = sum(path.stat().st_size for path in files_in(cache))
    monkeypatch.setenv(row_index.VARIABLE, str(size * 3 // 2))
    for _ in range(2):
        searched(other, WANTED)
    (kept,) = cache.iterdir()
    assert (kept / "table").read_text() == other
    monkeypatch.setenv(row_index.VARIABLE, "0")
    searched(indexed, WANTED)
    assert [*cache.iterdir()] == [kept]
    monkeypatch.setenv(row_index.VARIABLE, "2 GB")
    with pytest.raises(UsageError, match="SLUICE_CACHE_BYTES is '2 GB', not a number of bytes"):
        searched(indexed, WANTED)


def test_a_table_that_is_looked_up_is_used(
    indexed: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the other one was indexed later."""
    size = sum(path.stat().st_size for path in files_in(cache))
    others = [written(tmp_path / name, random.Random(6), ()) for name in ("other", "third")]
    for _ in range(2):
        searched(others[0], WANTED)
    monkeypatch.setenv(row_index.VARIABLE, str(size * 5 // 2))
    (first,) = (one for one in cache.iterdir() if (one / "table").read_text() == indexed)
    os.utime(first, (0, 0))
    searched(indexed, WANTED)
    for _ in range(2):
        searched(others[1], WANTED)
    assert {(one / "table").read_text() for one in cache.iterdir()} == {indexed, others[1]}


def test_a_table_too_large_for_the_cache_keeps_what_fits(
    indexed: str, cache: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[[], int]
) -> None:
    right = shown(searched(indexed, WANTED).to_pylist())
    size = sum(path.stat().st_size for path in files_in(cache))
    shutil.rmtree(cache)
    monkeypatch.setattr(row_index, "_open", {})
    monkeypatch.setenv(row_index.VARIABLE, str(size - 1))
    for _ in range(3):
        before = opened()
        assert shown(searched(indexed, WANTED).to_pylist()) == right
        monkeypatch.setattr(row_index, "_open", {})
    assert opened() > before, "a file of the table is looked up"
    assert 0 < sum(path.stat().st_size for path in files_in(cache)) < size


def test_without_a_cache_nothing_that_is_kept_is_used(
    indexed: str, monkeypatch: pytest.MonkeyPatch, opened: Callable[[], int]
) -> None:
    right, before = shown(searched(indexed, WANTED).to_pylist()), opened()
    monkeypatch.setenv(row_index.VARIABLE, "0")
    assert shown(searched(indexed, WANTED).to_pylist()) == right
    assert opened() == before


def test_the_doctor_finds_an_index_of_other_codes(
    indexed: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(cache)
    monkeypatch.setattr(row_index, "_open", {})
    right = row_index.codes_of
    monkeypatch.setattr(row_index, "codes_of", lambda values: right(values) + np.uint64(1))
    for _ in range(2):
        searched(indexed, WANTED)
    monkeypatch.setattr(row_index, "codes_of", right)
    ((name, *_),) = erasure.index_faults(indexed)
    assert name == "wrong-index"


def test_the_doctor_passes_by_what_is_kept_of_columns_that_are_gone(indexed: str) -> None:
    rows = DeltaTable(indexed).to_pyarrow_table().select(["small"]).rename_columns(["other"])
    write_deltalake(indexed, rows, mode="overwrite", schema_mode="overwrite")
    assert list(erasure.index_faults(indexed)) == []


def test_the_doctor_finds_an_index_of_other_rows(
    indexed: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(erasure.index_faults(indexed)) == []
    right = row_index.TableIndex._read
    monkeypatch.setattr(row_index.TableIndex, "_read", lambda *given: right(*given).slice(1))
    monkeypatch.setattr(row_index, "_open", {})
    shutil.rmtree(cache)
    for _ in range(2):
        searched(indexed, WANTED)
    monkeypatch.setattr(row_index.TableIndex, "_read", right)
    ((name, what, mend),) = erasure.index_faults(indexed)
    assert name == "wrong-index"
    assert "3 files" in what
    assert str(next(cache.iterdir())) in mend


SEARCH = """
import sys
from pathlib import Path
from tests.delta.reading.searched import searched
from tests.delta.tables import ID_AND_V, LARGE, Small
from tests.support.indexing import TAKE_AWAY, index_all
from sluice.delta.reading import searching
searching.WORTH_BYTES = searching.FEW = 0
searched(sys.argv[1], [{"big": [10**12, None]}])
"""


@pytest.mark.parametrize("nth", [1, 3])
def test_a_kill_while_it_is_written_leaves_it_to_the_next_search(
    tmp_path: Path, cache: Path, nth: int, opened: Callable[[], int]
) -> None:
    uri = written(tmp_path, random.Random(5), ())
    right = shown(searched(uri, WANTED).to_pylist())
    environ = os.environ | {"SLUICE_FAILPOINT": f"indexing:t#{nth}"}
    killed = subprocess.run([sys.executable, "-c", SEARCH, uri], env=environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(cache.rglob("*.rows"))) == nth
    for _ in range(2):
        assert shown(searched(uri, WANTED).to_pylist()) == right
    assert opened() > 0


def search_often(uri: str, cache: str, right: list[str]) -> None:
    index_small_tables()
    os.environ["SLUICE_CACHE"] = cache
    for _ in range(20):
        row_index._open.clear()
        assert shown(searched(uri, WANTED).to_pylist()) == right


def test_processes_index_and_lose_the_same_table_at_once(tmp_path: Path, cache: Path) -> None:
    uri = written(tmp_path, random.Random(5), ())
    right = shown(searched(uri, WANTED).to_pylist())
    processes = [forked(search_often, uri, str(cache.parent), right) for _ in range(3)]
    lost = 0
    while any(process.is_alive() for process in processes):
        lost += any(name.endswith(".codes") for *_, names in os.walk(cache) for name in names)
        shutil.rmtree(cache, ignore_errors=True)
        time.sleep(0.02)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert lost > 3


def test_many_searches_at_once_find_the_same(tmp_path: Path) -> None:
    uri = written(tmp_path, random.Random(5), ())
    right = shown(searched(uri, WANTED).to_pylist())
    with ThreadPoolExecutor(6) as pool:
        found = [pool.submit(searched, uri, WANTED) for _ in range(24)]
        assert all(shown(one.result().to_pylist()) == right for one in found)
