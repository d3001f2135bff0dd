"""Queries of every form, kept through histories of changes, against Spark's own answers."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.sql.shop import (
    advance_by_spark,
    asked_last,
    change,
    fill,
    not_as_in_duckdb,
    project,
    written,
    wrong,
)
from tests.support.games import in_depth

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("real_spark")

QUERIES = written(Path(__file__).parent / "queries.sql")
IN_SPARKS_WORDS = {  # Spark ties to the next query alone, and wants groups in FROM
    "exists_in_exists": """SELECT pid FROM people p WHERE EXISTS (SELECT 1 FROM orders o
        JOIN events e ON e.id = o.id WHERE o.k = p.k AND e.eid > p.n)""",
    "name_of_group": """SELECT id, n, (SELECT max(g) FROM orders o WHERE o.id = e.id) AS g
        FROM (SELECT id, count(*) AS n FROM events GROUP BY id) e""",
    "values_of_lateral": """SELECT id, (SELECT count(*) FROM people p WHERE p.k = o.k) AS n,
        (SELECT max(x) FROM events e WHERE e.id = o.id) + 1 AS m FROM orders o""",
    "of_pairs": QUERIES["of_pairs"].replace(  # Spark divides by zero where a side is constant
        "corr(v, id)",
        """try_divide(covar_pop(v, id), stddev_pop(CASE WHEN id IS NOT NULL THEN v END)
            * stddev_pop(CASE WHEN v IS NOT NULL THEN id END))""",
    ),
    **{  # Spark counts a limit wrongly where an outer INT meets a BIGINT
        name: QUERIES[name]
        .replace("orders o", "(SELECT *, bigint(k) AS b FROM orders) o")
        .replace("o.k", "o.b")
        for name in ("first_of_each", "in_distinct", "lateral_first")
    },
}


TURNS = 16 if in_depth() else 4


@pytest.mark.parametrize("seed", [1])
def test_every_form_of_query_is_kept_as_spark_answers_it(
    seed: int, spark: "SparkSession", tmp_path: Path
) -> None:
    """Until the last turn, Spark is asked only what DuckDB can't say, or says otherwise.

    There it is asked a query of each form as well.
    """
    lake, chance, seen = project(tmp_path, QUERIES, spark), random.Random(seed), set[str]()
    for turn in range(TURNS):
        if turn % 4 == 2:
            advance_by_spark(lake)
        else:
            reports = lake.here().advance()
            assert {r.table: r.engine for r in reports if r.engine.startswith("spark")} == {}
        choose = not_as_in_duckdb if turn < TURNS - 1 else asked_last
        assert wrong(lake, spark, choose(lake, QUERIES | IN_SPARKS_WORDS)) == {}, turn
        seen |= {name for name in QUERIES.keys() - seen if lake.rows(name)}
        (change if turn else fill)(lake, chance)
    assert seen == {*QUERIES}
