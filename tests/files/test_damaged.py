"""Parquet files whose head is whole and whose rows are not: each is named, the others delivered."""

import io
import random
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.games import seeds
from tests.support.landed import Landed, NewLanded, day, folder_of

from sluice.errors import DamagedFile, QualityStop

DECLARED = """
sources:
  events:
    path: "landing/{interval_start:%Y-%m-%d}/"
    format: parquet
    schema: id BIGINT, t STRING
dimensions:
  things: {path: landing/things/, format: parquet, schema: "id BIGINT, t STRING", key: [id]}
"""
Reads = Callable[[Landed], Landed]


def by_spark(lake: Landed) -> Landed:
    return lake.limit(computed_here_bytes=-1)


ENGINES = [Landed.here, by_spark]


def parquet(first: int, compression: str = "snappy", *, has_words: bool = True) -> bytes:
    ids = list(range(first, first + 100))
    rows = pa.table({"id": ids, "t": [f"word {i % 9}" for i in ids]})
    content = io.BytesIO()
    pq.write_table(rows, content, compression=compression, use_dictionary=has_words)
    return content.getvalue()


def torn(content: bytes, start: int = 4, end: int = 60) -> bytes:
    return content[:start] + bytes(end - start) + content[end:]


@pytest.fixture
def lake(new_landed: NewLanded) -> Landed:
    return new_landed(DECLARED)


@pytest.mark.parametrize("on", ENGINES)
def test_damaged_files_are_named_and_others_delivered(lake: Landed, on: Reads) -> None:
    good, bad = parquet(0), torn(parquet(100))
    lake.land(folder_of(0), a_parquet=bad, b_parquet=good)
    path = lake.landing / folder_of(0) / "a.parquet"
    (report,) = on(lake).deliver()
    assert lake.noted() == {day(0): (101, 100, 1)}
    (warned,) = [w for w in report.warnings if "can't be read" in w]
    assert warned.startswith(f"shop.events: {path} can't be read: Couldn't deserialize thrift")
    assert [row["id"] for row in sorted(lake.rows("events"), key=lambda r: r["id"])] == [
        *range(100)
    ]
    (kept,) = lake.quarantine()
    assert kept["reason"].startswith("the file can't be read: Couldn't deserialize thrift")
    assert lake.deliver()[0].outcome == "unchanged"


@pytest.mark.parametrize("on", ENGINES)
def test_a_dimension_without_all_its_files_is_not_loaded(lake: Landed, on: Reads) -> None:
    lake.land("things", a_parquet=torn(parquet(100)), b_parquet=parquet(0))
    path = lake.landing / "things" / "a.parquet"
    with pytest.raises(
        QualityStop, match=rf"^shop\.things: {path} can't be read: Couldn't"
    ) as told:
        on(lake).load()
    assert "nothing was committed" in told.value.hint


def test_a_delivery_of_a_damaged_file_alone_is_refused(lake: Landed) -> None:
    lake.land(folder_of(0), a_parquet=parquet(0))
    lake.here().deliver()
    lake.land(folder_of(0), a_parquet=torn(parquet(0)))
    with pytest.raises(
        QualityStop, match=r"none of 1 now delivered can be used.*the file can't be"
    ):
        lake.deliver()
    assert len(lake.rows("events")) == 100


@pytest.mark.parametrize("on", ENGINES)
@pytest.mark.parametrize("seed", seeds(15, deep=500))
def test_random_damage_is_never_a_bare_error(lake: Landed, on: Reads, seed: int) -> None:
    lake.land(folder_of(0), a_parquet=damaged(random.Random(seed)), b_parquet=parquet(0))
    try:
        on(lake).deliver()
    except QualityStop as stopped:  # its footer names other columns, or types that do not fit
        is_named = not isinstance(stopped, DamagedFile) and "a.parquet" in str(stopped)
    else:
        is_named = {*range(100)} <= {row["id"] for row in lake.rows("events")}
    assert is_named


def damaged(chance: random.Random) -> bytes:
    """A file with a run of zeros, or with a few bits that are others."""
    codec = chance.choice(["none", "snappy", "gzip", "zstd"])
    bad = bytearray(parquet(100, codec, has_words=chance.random() < 0.5))
    if chance.random() < 0.5:
        start, count = chance.randrange(len(bad) - 200), chance.randint(4, 200)
        bad[start : start + count] = bytes(count)
    else:
        for _ in range(chance.randint(1, 20)):
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
    return bytes(bad)
