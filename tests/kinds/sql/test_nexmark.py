"""Nexmark's queries as views, with retractions, against Spark's answers."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.sql.nexmark import KEPT, QUERIES, SOURCES, Nexmark
from tests.kinds.sql.shop import advance_by_spark, asked_last, not_as_in_duckdb, view, wrong
from tests.support.lake import HEAD, Lake

from sluice.declare.project import load
from sluice.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.usefixtures("real_spark")
def test_nexmarks_queries_are_kept(spark: "SparkSession", tmp_path: Path) -> None:
    """Until the last turn, Spark is asked only what DuckDB answers otherwise; then more."""
    views = "".join(view(name, sql) for name, sql in KEPT.items())
    lake = Lake(tmp_path, f"{SOURCES}views:\n{views}", spark)
    events, seen = Nexmark(lake), set[str]()
    events.happen(400)
    for turn in range(3):
        if turn == 1:
            advance_by_spark(lake)
        else:
            lake.here().advance()
        choose = not_as_in_duckdb if turn < 2 else asked_last
        assert wrong(lake, spark, choose(lake, KEPT)) == {}, turn
        seen |= {name for name in KEPT if lake.rows(name)}
        events.happen(60)
        events.retract(4)
    assert seen == {*KEPT}


def test_a_query_of_processing_time_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    declared = f"{HEAD}{SOURCES}views:\n{view('q12', QUERIES['q12'])}"
    (tmp_path / "pipelines" / "shop.yaml").write_text(declared)
    with pytest.raises(ConfigError, match="the time of running is not allowed"):
        load(tmp_path)
