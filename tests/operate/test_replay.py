"""Intervals with quarantined rows are replayed once the rule or the files are mended."""

from typing import TYPE_CHECKING

import pytest
from tests.gate.conftest import SALES, Shop

from sluice.delta.note_tables import read_rows
from sluice.engine.advance import Run
from sluice.errors import UsageError
from sluice.operate.delivering import replay, to_replay

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

GOOD = [{"id": n, "item": "tea", "price": n} for n in range(5)]
BAD = {"id": 9, "item": "tea", "price": -1}


@pytest.fixture
def shop(tmp_path: "Path", spark: "SparkSession") -> Shop:
    return Shop(tmp_path, spark)


def replayed(shop: Shop) -> list[str]:
    table = shop.project.graph.table("sales")
    done = replay(shop.spark, shop.project, table, to_replay(shop.project, table), Run("again"))
    return [report.outcome for report in done]


def test_rows_in_quarantine_come_back_once_the_rule_is_mended(shop: Shop) -> None:
    shop.land(0, [*GOOD, BAD])
    shop.land(1, GOOD)
    assert [shop.deliver(nth).quarantined for nth in range(2)] == [1, 0]
    assert replayed(shop) == ["position", "unchanged"]  # still bad: read again, nothing changed
    shop.declare(SALES.replace("min_value: 0", "min_value: -5"))
    assert shop.deliver(0).outcome == "unchanged"  # the files are what they were
    assert replayed(shop) == ["committed", "committed"]
    assert read_rows(shop.uri("quarantine")) == []
    assert 9 in {row["id"] for row in read_rows(shop.uri())}
    assert replayed(shop) == []


def test_an_interrupted_replay_is_taken_up_again(shop: Shop) -> None:
    from sluice.delta.intervals import withdraw

    shop.land(0, [*GOOD, BAD])
    shop.deliver(0)
    (interval,) = to_replay(shop.project, shop.project.graph.table("sales"))
    withdraw(shop.uri("intervals"), interval)
    assert to_replay(shop.project, shop.project.graph.table("sales")) == [interval]


def test_only_intervals_within_the_bounds_are_replayed(shop: Shop) -> None:
    for nth in range(2):
        shop.land(nth, [BAD])
        shop.deliver(nth)
    table = shop.project.graph.table("sales")
    first, second = to_replay(shop.project, table)
    assert to_replay(shop.project, table, start=second.start) == [second]
    assert to_replay(shop.project, table, end=first.end) == [first]


def test_a_view_has_nothing_to_replay(shop: Shop) -> None:
    view = (
        "views:\n  top: {kind: topk, from: sales, partition_by: [item], order_by: [id], limit: 1}"
    )
    project = shop.declare(SALES + view)
    with pytest.raises(UsageError, match="only sources and dimensions quarantine rows"):
        to_replay(project, project.graph.table("top"))
