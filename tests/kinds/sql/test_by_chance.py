"""Random queries, kept through random changes of all their tables, against Spark's answers."""

import random
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.sql.generated import Writer
from tests.kinds.sql.shop import change, not_as_in_duckdb, planned, project, wrong
from tests.support.games import seeds
from tests.support.lake import Lake, frozen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE, PLANNED = 15, 100


def queries(seed: int) -> dict[str, str]:
    written = (Writer(random.Random(1_000 * seed + i)).query() for i in range(AT_ONCE))
    return {f"v{i}": query for i, query in enumerate(written)}


def proved_keys(
    lake: Lake, name: str, kept: Mapping[str, str], folder: Path
) -> list[tuple[str, ...]]:
    """The keys of one or two columns that a view's query is known to have."""
    columns = lake.table(name).columns
    keys = [key for size in (1, 2) for key in combinations(columns, size)]
    return [key for key in keys if not planned(kept[name], folder, key=", ".join(key))]


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("seed", seeds(1, deep=40))
def test_random_queries_are_kept_as_spark_answers_them(
    seed: int, spark: "SparkSession", tmp_path: Path
) -> None:
    kept = {name: sql for name, sql in queries(seed).items() if not planned(sql, tmp_path)}
    lake, chance = project(tmp_path / "lake", kept, spark), random.Random(seed)
    proved = [(name, key) for name in kept for key in proved_keys(lake, name, kept, tmp_path)]
    for turn in range(3):
        change(lake, chance)
        (lake.by_spark() if turn == 1 else lake.here()).advance()
        found = wrong(lake, spark, kept if turn == 2 else not_as_in_duckdb(lake, kept))
        assert not found, (turn, [kept[name] for name in found], found)
        for name, key in proved:
            rows = Counter(frozen([row[c] for c in key]) for row in lake.rows(name))
            assert not rows or max(rows.values()) == 1, (key, kept[name])


def test_nearly_all_random_queries_are_kept_and_the_others_refused_by_name(tmp_path: Path) -> None:
    written = {f"v{i}": Writer(random.Random(i)).query() for i in range(PLANNED)}
    refused = {name: why for name, sql in written.items() if (why := planned(sql, tmp_path))}
    assert all(": " in problem for why in refused.values() for problem in why)
    assert len(refused) < PLANNED / 20, refused
