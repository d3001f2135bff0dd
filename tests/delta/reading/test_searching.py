"""Searched rows are exactly those that have the wanted values, whoever wrote the files."""

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.delta.reading.searched import (
    COMPARED,
    ROWS,
    a_row,
    a_span,
    among,
    searched,
    shown,
    within,
    written,
)

from sluice.delta.log.files import FEATURE
from sluice.delta.reading import searching
from sluice.delta.reading.searching import SearchedVersion
from sluice.limits import Limits


@pytest.fixture(autouse=True)
def are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are searched, and never indexed."""
    monkeypatch.setattr(searching.TableIndex, "is_due", lambda *given: False)


@pytest.fixture(params=["groups together", "group by group"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a file is read."""
    if request.param == "group by group":
        monkeypatch.setattr(searching, "TOGETHER_BYTES", 1)
    return str(request.param)


@pytest.mark.parametrize("parts", [(), ("part",)])
@pytest.mark.parametrize("seed", range(3))
def test_the_rows_are_those_with_the_values(
    tmp_path: Path, seed: int, parts: tuple[str, ...], by: str
) -> None:
    chance = random.Random(seed)
    uri = written(tmp_path, chance, parts)
    rows = DeltaTable(uri).to_pyarrow_table().to_pylist()
    found = 0
    if by == "group by group":
        for path in Path(uri).rglob("*.parquet"):
            pq.write_table(pq.ParquetFile(path).read(), path, row_group_size=7)
    for _ in range(25):
        wanted = [
            {
                name: [a_row(chance)[name] for _ in range(chance.randrange(1, 4))]
                for name in chance.sample(COMPARED, chance.randrange(1, 4))
            }
            for _ in range(chance.randrange(1, 3))
        ]
        matching = [row for row in rows if any(among(row, one) for one in wanted)]
        assert shown(searched(uri, wanted).to_pylist()) == shown(matching)
        found += len(matching)
    assert found > 100


def test_the_rows_are_those_within_a_span(tmp_path: Path, by: str) -> None:
    chance, found = random.Random(by), 0
    uri = written(tmp_path, chance, ())
    rows = DeltaTable(uri).to_pyarrow_table().to_pylist()
    for _ in range(40):
        span, wanted = a_span(chance), [{"is_on": [True, None]}, {"small": [1, 3]}]
        matching = [r for r in rows if within(r, span) and any(among(r, one) for one in wanted)]
        assert shown(searched(uri, wanted, span).to_pylist()) == shown(matching)
        found += len(matching)
    assert found > 500


def test_marked_rows_are_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = written(tmp_path, random.Random(9), ())
    files = searching.files_of(DeltaTable(uri))
    assert FEATURE not in (DeltaTable(uri).protocol().reader_features or ())
    lost = {file.path: pa.array([i % 3 > 0 for i in range(ROWS // 2)]) for file in files}
    marked = [replace(file, kept=lost[file.path]) for file in files]
    everything = {"part": pa.chunked_array([pa.array(["p0", "p1", "p2", None])])}
    schema = pa.schema(DeltaTable(uri).schema().to_arrow())
    live = [i for i in range(ROWS) if i >= ROWS // 2 or i % 3]
    for most in (None, len(live), 5):
        search = searching.FileSearch(uri, schema, [everything], most=most)
        for (_, page), file in zip(search.rows(marked, ["small"]), marked, strict=True):
            first = range(ROWS if most is None else most + file.lost)
            assert page[searching.ROW].to_pylist() == [i for i in live if i in first]


def test_a_limit_counts_the_rows_that_are_left(tmp_path: Path) -> None:
    uri = written(tmp_path, random.Random(9), ())
    (file, *_) = searching.files_of(DeltaTable(uri))
    marked = replace(file, kept=pa.array([False] * 5 + [True] * 5))
    everything = {"part": pa.chunked_array([pa.array(["p0", "p1", "p2", None])])}
    schema = pa.schema(DeltaTable(uri).schema().to_arrow())
    ((_, page),) = searching.FileSearch(uri, schema, [everything], most=3).rows([marked], ["small"])
    assert page.num_rows >= 3


def test_files_of_other_types_are_read_by_arrow(tmp_path: Path) -> None:
    uri = written(tmp_path, random.Random(4), ())
    before = searched(uri, [{"big": [0]}])
    for file in searching.files_of(DeltaTable(uri)):
        path = Path(uri, file.path)
        pq.write_table(pq.read_table(path), path, use_deprecated_int96_timestamps=True)
    assert searched(uri, [{"big": [0]}]).equals(before)


def test_too_many_rows_are_not_held(tmp_path: Path) -> None:
    uri = written(tmp_path, random.Random(5), ())
    searched = SearchedVersion(
        uri, DeltaTable(uri).version(), replace(Limits(), handed_rows=ROWS // 3)
    )
    assert (
        searched.find_rows([{"is_on": pa.chunked_array([pa.array([True, False, None])])}]) is None
    )


def test_no_larger_table_is_searched_than_may_be(tmp_path: Path) -> None:
    uri = written(tmp_path, random.Random(4), ())
    searched = SearchedVersion(uri, DeltaTable(uri).version(), Limits(searched_bytes=-1))
    wanted = [{"small": pa.chunked_array([pa.array([1], pa.int16())])}]
    assert searched.find_at_most(wanted, 10 * ROWS) is None
    assert replace(searched, limits=Limits()).find_at_most(wanted, 10 * ROWS) is not None


def test_a_search_reads_the_tables_types_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many files and columns it finds."""
    uri, read = written(tmp_path, random.Random(5), ()), []
    types = searching.arrow_schema
    monkeypatch.setattr(searching, "arrow_schema", lambda *at: read.append(at) or types(*at))
    assert searched(uri, [{"small": [1, 2]}]).num_rows
    assert len(read) == 1
