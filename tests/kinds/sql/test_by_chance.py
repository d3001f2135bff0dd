"""Random queries, kept through random changes of all their tables, against Spark's answers."""

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.sql.generated import Writer
from tests.kinds.sql.shop import change, planned, project, wrong

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(*map(int, os.environ.get("SLUICE_SQL_SEEDS", "0,2").split(",")))
AT_ONCE = 15


def queries(seed: int) -> dict[str, str]:
    written = (Writer(random.Random(1_000 * seed + i)).query() for i in range(AT_ONCE))
    return {f"v{i}": query for i, query in enumerate(written)}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_queries_are_kept_as_spark_answers_them(
    seed: int, spark: "SparkSession", tmp_path: Path
) -> None:
    kept = {name: sql for name, sql in queries(seed).items() if not planned(sql, tmp_path)}
    lake, chance = project(tmp_path / "lake", kept, spark), random.Random(seed)
    for turn in range(3):
        change(lake, chance)
        lake.limit(computed_here_bytes=-1 if turn == 1 else 2_000_000).advance()
        found = wrong(lake, spark, kept)
        assert not found, (turn, [kept[name] for name in found], found)


def test_nearly_all_random_queries_are_kept_and_the_others_refused_by_name(tmp_path: Path) -> None:
    written = {f"v{i}": Writer(random.Random(i)).query() for i in range(300)}
    refused = {name: why for name, sql in written.items() if (why := planned(sql, tmp_path))}
    assert all(": " in problem for why in refused.values() for problem in why)
    assert len(refused) < 15, refused
