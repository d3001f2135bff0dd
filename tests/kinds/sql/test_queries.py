"""Queries of every form, kept through histories of changes, against Spark's own answers."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.sql.shop import answer, change, project, written
from tests.support.lake import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = written(Path(__file__).parent / "queries.sql")


@pytest.mark.parametrize("seed", [1, 2])
def test_every_form_of_query_is_kept_as_spark_answers_it(
    seed: int, spark: "SparkSession", tmp_path: Path
) -> None:
    lake, chance = project(tmp_path, QUERIES, spark), random.Random(seed)
    for turn in range(4):
        reports = lake.limit(computed_here_bytes=-1 if turn == 2 else 2_000_000).advance()
        if turn != 2:
            by_spark = {r.table: r.engine for r in reports if r.engine.startswith("spark")}
            assert not by_spark
        wrong = {
            name: sql
            for name, sql in QUERIES.items()
            if counted(lake.rows(name)) != answer(lake, spark, sql)
        }
        assert not wrong, turn
        change(lake, chance)
