"""A large window store marks rows, corrected or expired; its slices are sealed all the same."""

from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from tests.kinds.window_store import traces
from tests.kinds.window_store.traces import DECLARED, NOON
from tests.support.games import seeds
from tests.support.lake import Lake, NewLake, Row, counted, folded

from sluice.delta.log.files import has_vectors
from sluice.delta.log.position import head
from sluice.operate.maintain import maintain
from sluice.operate.verify import faults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGE = {"merged_bytes": -1, "marked_share": 1_000, "small_files": 3}
IDS = 60


def trace(id_: int, day: int, duration: int) -> Row:
    at = NOON + timedelta(days=day, seconds=id_)
    return {"id": id_, "service": f"s{id_ % 3}", "at": at, "duration": duration}


def upkeep(lake: Lake) -> list[str]:
    return [each.done for each in maintain(lake.spark, lake.project, [lake.table("recent")])]


def check(lake: Lake) -> None:
    traces.check(lake)
    assert not any(faults(lake.project, lake.table("recent")).values())


def test_slices_with_marked_rows_are_filed_again_and_their_rows_expire(new_lake: NewLake) -> None:
    lake = new_lake(DECLARED).limit(**LARGE)
    lake.put("traces", *(trace(n, n // 10, 1) for n in range(IDS)))
    lake.advance()
    lake.put("traces", *(trace(n, n // 10, 2) for n in range(5, IDS, 10)), gone=[{"id": 14}])
    lake.advance()
    assert has_vectors(DeltaTable(lake.uri("recent")))
    check(lake)
    assert upkeep(lake) == ["seal"]
    check(lake)
    lake.put("traces", *(trace(n, n // 10, 3) for n in (3, 13, 23)))
    lake.advance()
    lake.put("traces", trace(100, 10, 1))
    lake.advance()
    assert min(row["window_start"] for row in lake.stored("recent")) > NOON + timedelta(days=2)
    check(lake)


@pytest.mark.parametrize("seed", seeds(2, 30))
def test_random_corrections_leave_the_rows_and_the_feed_of_a_merged_store(
    tmp_path: Path, spark: "SparkSession", seed: int
) -> None:
    marked = Lake(tmp_path / "marked", DECLARED, spark).limit(**LARGE)
    merged, chance, days = Lake(tmp_path / "merged", DECLARED, spark), Random(seed), 6
    day = {n: n % days for n in range(IDS)}
    for n in range(10):
        days += chance.choice([0, 0, 1, 3])
        some = list(range(IDS)) if n == 0 else chance.sample(range(IDS), chance.choice([1, 6]))
        moved = [id_ for id_ in some if n and chance.random() < 0.3]
        day |= {id_: chance.randrange(days) for id_ in moved}
        gone = chance.sample(range(IDS), 2) if chance.random() < 0.3 else []
        for lake in (marked, merged):
            rows = [trace(id_, day[id_], n) for id_ in some]
            lake.put("traces", *rows, gone=[{"id": id_} for id_ in gone])
            lake.advance()
        if chance.random() < 0.4:
            upkeep(marked)
            upkeep(merged)
        assert counted(marked.stored("recent")) == counted(merged.stored("recent"))
    assert folded(marked.feed("recent")) == folded(merged.feed("recent"))
    assert has_vectors(DeltaTable(marked.uri("recent")))
    assert head(marked.uri("recent")) is not None
    check(marked)
