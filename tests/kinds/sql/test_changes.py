"""A query that is written anew: what is rebuilt, and what its tables are called."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kinds.sql.shop import SOURCES, project, view
from tests.support.in_duckdb import wrong
from tests.support.lake import HEAD, Lake

from sluice.delta.places.lake_layout import leftovers
from sluice.engine.advance import Run
from sluice.operate.doctor import examine
from sluice.operate.explain import explain
from sluice.operate.maintain import maintain
from sluice.operate.rebuild import rebuild, redefined_parts
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
        ("shop.sums__1", "one side"),
        ("shop.sums__state", "extend"),
        ("shop.sums", "build"),
    ]
    lake.advance()
    assert wrong(lake) == {}
    assert not redefined_parts(lake.project, view)


def test_tables_that_a_shorter_query_leaves_behind_are_named_and_removed_after_the_rebuild(
    spark: "SparkSession", tmp_path: Path
) -> None:
    lake = project(tmp_path, {"sums": QUERY.format(0)}, spark)
    lake.put("orders", *({"id": i, "k": i % 3, "g": "a", "v": i} for i in range(9)))
    lake.put("people", *({"pid": i, "k": i % 3, "w": f"w{i % 2}"} for i in range(4)))
    lake.advance()
    assert lake.stored_names() == ["sums__1", "sums__state", "sums"]
    file = tmp_path / "config" / "pipelines" / "shop.yaml"
    short = "SELECT id, v FROM orders WHERE v > 2"
    file.write_text(HEAD + SOURCES + view("sums", short))
    lake.project = lake.loaded()
    table, now = lake.table("sums"), datetime.now(UTC)
    assert [step.next for step in explain(lake.project, table)] == ["rebuild", *["maintain"] * 2]
    left = ["shop.sums__1", "shop.sums__state"]
    assert left_behind(lake) == left
    assert not [one for one in maintain(lake.spark, lake.project, [table]) if one.done == "remove"]
    rebuild(lake.spark, lake.project, table, Run("test"))
    found = [one for one in examine(lake.project, [table], now) if one.name == "left-behind"]
    assert [(one.table, one.stops) for one in found] == [(name, False) for name in left]
    done = maintain(lake.spark, lake.project, [table])
    assert [one.table for one in done if one.done == "remove"] == left
    assert left_behind(lake) == []
    assert not Path(lake.uri("sums__1")).exists()
    file.write_text(HEAD + SOURCES + view("sums", QUERY.format(0)))
    lake.project = lake.loaded()
    rebuild(lake.spark, lake.project, lake.table("sums"), Run("test"))
    assert wrong(lake) == {}


def left_behind(lake: Lake) -> list[str]:
    """The ids of the tables that views have left behind."""
    return [*leftovers(lake.project, lake.project.graph.tables.values())]
