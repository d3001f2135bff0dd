"""A rebuild is no origin of what was delivered before it: it names what it reflects for the first
time, and the rows behind a row are found as ever.
"""

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession
from tests.support.lake import Lake, Row

from sluice.engine.advance import Run
from sluice.language.names import ID, INTERVAL
from sluice.operate.rebuild import rebuild
from sluice.operate.why import why
from sluice.read.lake import open_lake

DECLARED = """
sources:
  lines: {path: "lines/{interval_start:%Y-%m-%d}/", schema: "id INT, g STRING, v INT"}
views:
  sums: {kind: cogroup, key: [g], streams: {lines: {from: lines, aggregates: {v: sum(v)}}}}
"""
DELIVERIES = 30


def line(n: int) -> Row:
    at = datetime(2024, 1, 1 + n, tzinfo=UTC)
    return {INTERVAL: at, ID: f"f-{n}", "id": n, "g": "ab"[n % 2], "v": n}


def test_a_rebuilt_row_names_what_is_newly_read_and_the_rows_that_it_comes_from(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = Lake(tmp_path, DECLARED, spark)
    for n in range(DELIVERIES):
        lake.put("lines", line(n))
    lake.advance()
    lake = Lake(tmp_path, DECLARED.replace("sum(v)", "max(v)"), spark)
    rebuild(lake.spark, lake.project, lake.table("sums"), Run("again"))
    found = why(open_lake(tmp_path / "config"), "sums", "a")
    assert found
    assert found.origin.commit.position
    assert (found.origin.commit.position.kind, found.origin.reads) == ("rebuild", ())
    (lines,) = (part for part in found.sources if part.table == "shop.lines")
    assert sorted(lines.rows["id"].to_pylist()) == list(range(0, DELIVERIES, 2))


def test_an_origin_is_short_in_a_terminal(tmp_path: Path, spark: SparkSession) -> None:
    lake = Lake(tmp_path, DECLARED, spark)
    for n in range(DELIVERIES):
        lake.put("lines", line(n))
    lake.advance()
    found = why(open_lake(tmp_path / "config"), "sums", "a")
    assert found
    (read,) = found.origin.reads
    assert len(read.commits) == DELIVERIES
    assert len(repr(found.origin)) < 1_500
