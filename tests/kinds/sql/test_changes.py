"""A query that is written anew: what is rebuilt, and what its tables are called."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.kinds.sql.shop import SOURCES, project, wrong
from tests.support.lake import HEAD

from sluice.engine.advance import Run
from sluice.operate.rebuild import rebuild
from sluice.operate.redefined import redefined_parts
from sluice.read.status import status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """SELECT p.w, sum(o.v) AS s FROM orders o JOIN people p ON o.k = p.k
    GROUP BY p.w HAVING sum(o.v) > {}"""


def test_only_the_parts_whose_meaning_changed_are_rebuilt(
    spark: "SparkSession", tmp_path: Path
) -> None:
    lake = project(tmp_path, {"sums": QUERY.format(0)}, spark)
    lake.put("orders", *({"id": i, "k": i % 3, "v": i} for i in range(9)))
    lake.put("people", *({"pid": i, "k": i % 3, "w": f"w{i % 2}"} for i in range(4)))
    lake.advance()
    (stands,) = status(lake.project, [lake.table("sums")])
    assert (stands.problem, stands.lag) == ("", ())
    text = (tmp_path / "config" / "pipelines" / "shop.yaml").read_text()
    assert text.startswith(HEAD + SOURCES)
    (tmp_path / "config" / "pipelines" / "shop.yaml").write_text(text.replace("> 0", "> 20"))
    lake.project = lake.loaded()
    view = lake.table("sums")
    (stands,) = status(lake.project, [view])
    assert "another definition" in stands.problem
    assert {*redefined_parts(lake.project, view)} == {"shop.sums__state", "shop.sums"}
    lake.put("orders", {"id": 20, "k": 0, "v": 100})
    reports = rebuild(lake.spark, lake.project, view, Run("test"))
    assert [(r.table, r.strategy) for r in reports] == [
        ("shop.sums__1", "recompute"),
        ("shop.sums__state", "extend"),
        ("shop.sums", "build"),
    ]
    lake.advance()
    assert wrong(lake, spark, {"sums": QUERY.format(20)}) == {}
    assert all(verdict.is_equal for verdict in lake.verdicts())
    assert not redefined_parts(lake.project, view)
