"""Queries of every form, kept in this process, against DuckDB's answers."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.sql.shop import change, fill, project, written
from tests.support.games import SEED
from tests.support.in_duckdb import wrong

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = written(Path(__file__).parent / "queries.sql")
OTHERWISE = {  # in DuckDB, or in what sqlglot makes of them
    *("by_expression", "of_one_pair", "shapes", "days", "distinct_days"),  # numbers and times
    *("in_shown", "not_of_both", "pivoted", "pivoted_by_two", "letters_or_none"),  # nulls
    *("cubed", "unnamed", "shown_again_of_groups"),  # names of columns
    *("letters_beside", "entries", "range_in_from", "range_of_one"),  # what it can't express
}
ASKED = sorted(QUERIES.keys() - OTHERWISE)


@pytest.mark.parametrize("names", [ASKED[n::12] for n in range(12)], ids=lambda n: n[0])
def test_the_rows_are_duckdbs(names: list[str], spark: "SparkSession", tmp_path: Path) -> None:
    lake = project(tmp_path, {name: QUERIES[name] for name in names}, spark)
    chance = random.Random(SEED)
    for alter in (fill, change):
        alter(lake, chance)
        lake.advance()
        assert wrong(lake) == {}
