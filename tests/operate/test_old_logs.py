"""Upkeep deletes old commits of logs; whoever lags still reads all that it has yet to read."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.ageing import age
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, Row, counted

from sluice.operate.maintain import Upkeep, maintain

DECLARED = """
sources:
  sales:
    path: "s/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, item STRING, paid INT"
dimensions:
  items: {path: i/, key: [item], schema: "item STRING, name STRING"}
views:
  totals:
    kind: cogroup
    key: [item]
    streams:
      sales: {from: sales, aggregates: {paid: sum(paid), ids: collect_list(id ORDER BY id)}}
  best: {kind: topk, from: totals, order_by: [paid desc], limit: 2}
  slow: {kind: select, from: sales, where: paid > 2}
  named:
    kind: lookup
    from: sales
    join: [{dimension: items, on: item = items.item, type: left}]
    select: {id: id, name: items.name}
"""


@pytest.fixture(scope="module")
def advanced(tmp_path_factory: pytest.TempPathFactory, local_spark: SparkSession) -> Lake:
    made = Lake(tmp_path_factory.mktemp("sales"), DECLARED, local_spark)
    made.put("items", *({"item": f"i{n}", "name": f"n{n}"} for n in range(3)))
    for number in range(12):
        made.put("sales", sale(number), gone=[sale(number - 5)])
        made.advance(*(["slow"] if number < 5 else []), "totals", "best", "named")
    return made


@pytest.fixture
def lake(advanced: Lake, tmp_path: Path) -> Lake:
    return advanced.copy(tmp_path / "copy")


def check(lake: Lake) -> None:
    assert wrong(lake, "totals", "best", "slow") == {}
    named = [{"id": r["id"], "name": "n" + r["item"][1:]} for r in lake.stored("sales")]
    assert counted(lake.rows("named")) == counted(named)


def sale(number: int) -> Row:
    return {"id": number, "item": f"i{number % 3}", "paid": number % 7}


def commits(lake: Lake, name: str) -> list[int]:
    """The versions whose commits are in a table's log."""
    found = Path(lake.uri(name), "_delta_log").glob("*.json")
    return sorted(int(path.stem) for path in found if path.stem.isdigit())


def upkeep(lake: Lake) -> list[Upkeep]:
    for name in ("sales", *lake.stored_names()):
        for version in commits(lake, name):
            age(lake.uri(name), version, 40)
    return maintain(lake.spark, lake.project, lake.project.graph.tables.values())


def test_logs_end_behind_the_slowest_consumer(lake: Lake) -> None:
    done = {each.table for each in upkeep(lake) if each.done == "log"}
    assert done >= {"shop.totals", "shop.totals__state", "shop.best"}
    assert commits(lake, "totals")[0] == 9, "there is a checkpoint, and its consumer has read all"
    assert commits(lake, "sales")[0] == 0, "one view has not read all"
    assert commits(lake, "named")[0] == 0, "its batches name the dimension's versions"
    lake.put("sales", sale(90), gone=[sale(10)])
    lake.advance()
    assert "shop.sales" in {each.table for each in upkeep(lake) if each.done == "log"}
    assert commits(lake, "sales")[0] == 9
    lake.put("sales", sale(91), gone=[sale(9)])
    lake.advance()
    check(lake)
    assert not [each for each in upkeep(lake) if each.done == "log"]


def test_what_a_rebuild_renewed_needs_no_older_commits(lake: Lake) -> None:
    from sluice.engine.advance import Run
    from sluice.operate.rebuild import rebuild

    rebuild(lake.spark, lake.project, lake.table("named"), Run("again"))
    assert lake.head("named").version < 19
    for number in range(30, 38):
        lake.put("sales", sale(number))
        lake.advance("named")
    upkeep(lake)
    assert commits(lake, "named")[0] in (9, 19)
    lake.advance()
    check(lake)
