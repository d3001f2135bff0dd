"""A table whose first batch has failed is mended by another definition, without a rebuild."""

import pytest
from tests.support.landed import Landed, NewLanded, folder_of

from sluice.delta.log.position import head
from sluice.engine import BatchReport
from sluice.engine.advance import Run, advance
from sluice.errors import QualityStop

SALES = """sources:
  sales: {path: "landing/{interval_start:%Y-%m-%d}/", format: json, schema: "id INT, n INT"}
"""
ROWS = [{"id": 1, "n": 0}, {"id": 2, "n": 4}]
HEAD = 'pipeline: shop\nschedule: "@daily"\nstart_date: 2024-01-01\n'
SUMS = """views:
  shares:
    kind: cogroup
    key: [id]
    streams: {s: {from: sales, aggregates: {%s}}}
"""
NONE_LESS = (
    "[{type: expect_column_values_to_be_between, column: n, min_value: 1, on_failure: stop}]"
)


@pytest.fixture
def lake(new_landed: NewLanded) -> Landed:
    lake = new_landed(SALES)
    lake.land(folder_of(0), a_json=ROWS)
    lake.deliver(name="sales")
    return lake


def declare(lake: Landed, views: str) -> None:
    lake.declare(HEAD + SALES + views)


def advanced(lake: Landed) -> tuple[BatchReport, ...]:
    return advance(lake.spark, lake.project, lake.table("shares"), Run("r"))


def test_a_view_whose_first_build_failed_takes_the_corrected_expression(lake: Landed) -> None:
    declare(lake, SUMS % "least: min(8 / n)")
    with pytest.raises(QualityStop, match="Division by zero"):
        advanced(lake)
    at = head(lake.uri("shares__state"))
    assert not (at and at.is_filled)
    declare(lake, SUMS % "least: 'min(try_divide(8, n))', rows: count(*)")
    assert [report.outcome for report in advanced(lake)] == ["committed", "committed"]
    assert [row["rows"] for row in lake.rows("shares")] == [1, 1]
    assert all(verdict.is_sound for verdict in lake.verdicts("shares"))


def test_so_does_one_of_another_kind(lake: Landed) -> None:
    declare(lake, SUMS % "least: min(8 / n)")
    with pytest.raises(QualityStop):
        advanced(lake)
    declare(lake, "views:\n  shares: {kind: topk, from: sales, order_by: [n desc], limit: 1}\n")
    advanced(lake)
    assert [row["n"] for row in lake.rows("shares")] == [4]
    assert all(verdict.is_sound for verdict in lake.verdicts("shares"))


def test_a_state_that_was_built_follows_its_view_that_was_not(lake: Landed) -> None:
    declare(lake, SUMS % "n: sum(n)" + f"    expect: {NONE_LESS}\n")
    with pytest.raises(QualityStop, match="marked stop"):
        advanced(lake)
    declare(lake, SUMS % "n: sum(n + 1)" + f"    expect: {NONE_LESS}\n")
    advanced(lake)
    assert sorted(row["n"] for row in lake.rows("shares")) == [1, 5]
    assert all(verdict.is_sound for verdict in lake.verdicts("shares"))
    lake.land(folder_of(1), a_json=[{"id": 1, "n": 2}])
    lake.deliver(1, "sales")
    advanced(lake)
    assert sorted(row["n"] for row in lake.rows("shares")) == [4, 5]
    assert all(verdict.is_sound for verdict in lake.verdicts("shares"))
