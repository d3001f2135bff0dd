"""Searched rows are exactly those that have the wanted values, whoever wrote the files."""

import random
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from polars.exceptions import SchemaError
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
from sluice.delta.reading import by_arrow, by_polars, searching
from sluice.delta.reading.searched_version import SearchedVersion
from sluice.limits import Limits


@pytest.fixture(autouse=True)
def are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are searched by polars as if they were many, unless it can't, and never indexed."""
    monkeypatch.setattr(searching, "WORTH_BYTES", -1)
    monkeypatch.setattr(searching.TableIndex, "is_due", lambda *given: False)


@pytest.fixture(params=["polars", "arrow", "arrow, group by group"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who searches."""
    if request.param != "polars":
        monkeypatch.setattr(pl, "collect_all", Mock(side_effect=SchemaError("other types")))
    if request.param == "arrow, group by group":
        monkeypatch.setattr(by_arrow, "TOGETHER_BYTES", 1)
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
    if by == "arrow, group by group":
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
    assert searched.rows([{"is_on": pa.chunked_array([pa.array([True, False, None])])}]) is None


@pytest.mark.parametrize("most", [0, 1_000_000])
def test_files_are_read_together_up_to_a_number_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """All of their rows may be wanted, and are held until they are counted."""
    uri, held = written(tmp_path, random.Random(3), ()), list[int]()
    collected = pl.collect_all

    def noted(frames: list[pl.LazyFrame]) -> list[pl.DataFrame]:
        held.append(len(frames))
        return collected(frames)

    monkeypatch.setattr(pl, "collect_all", noted)
    whole = pa.chunked_array([pa.array([0, 10**12], pa.int64())])
    monkeypatch.setattr(by_polars, "TOGETHER_BYTES", most)
    searched = SearchedVersion(uri, DeltaTable(uri).version(), Limits())
    assert searched.few([{"big": whole}], 10 * ROWS)
    count = len(DeltaTable(uri).file_uris())
    assert count > 1
    assert held == ([1] * count if not most else [count])


def test_arrow_scans_no_larger_table_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where polars fails at a file with columns of other types."""
    uri = written(tmp_path, random.Random(4), ())
    monkeypatch.setattr(pl, "collect_all", Mock(side_effect=SchemaError("other types")))
    searched = SearchedVersion(uri, DeltaTable(uri).version(), Limits(scanned_bytes=-1))
    wanted = [{"small": pa.chunked_array([pa.array([1], pa.int16())])}]
    assert searched.few(wanted, 10 * ROWS) is None
    assert replace(searched, limits=Limits()).few(wanted, 10 * ROWS) is not None
