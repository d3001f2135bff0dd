"""What a batch of a cogroup reads: feed and touched state; inputs only for broken groups."""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest
from hypothesis import strategies as st
from tests.kinds.cogroup.merged import ROWS, SALES, lake_of
from tests.kinds.cogroup.streams import Aggregates, G, per_key
from tests.support.contract import Case, hold
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, NewLake, Row, State, without_files
from tests.support.oracle import column, ordered, present
from tests.support.rows import groups, ids, numbers, row, words

from sluice.delta.reading import local
from sluice.engine.plan import nodes_of
from sluice.operate.explain import explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def recomputed(lake: Lake) -> int | None:
    """How many groups the next batch recomputes."""
    state, _ = lake.advance()
    return state.recomputed


@pytest.mark.usefixtures("real_spark")
def test_what_comes_is_merged(tmp_path: Path, spark: "SparkSession") -> None:
    lake = lake_of(
        tmp_path,
        spark,
        "low: min(v), high: max(v), eldest: first(w ORDER BY v), newest: last(w ORDER BY v), "
        "about: approx_count_distinct(w), middle: 'approx_percentile(v, 0.5)', "
        "often: 'approx_top_k(w, 1)'",
    )
    lake.put("sales", {"id": 9, "g": "a", "v": 9, "w": "q"}, {"id": 8, "g": "c", "v": 0, "w": "q"})
    assert recomputed(lake) == 0
    assert {r["g"]: (r["low"], r["high"], r["eldest"], r["newest"], r["about"], r["middle"])
            for r in lake.rows("found")} == {
        "a": (1, 9, "x", "q", 3, 5),
        "b": (3, 3, "z", "z", 1, 3),
        "c": (0, 0, "q", "q", 1, 0),
    }  # fmt: skip
    assert {r["g"]: r["often"] for r in lake.rows("found")}["a"] == [{"item": "x", "count": 2}]


@pytest.mark.parametrize(
    ("why", "come", "gone", "broken"),
    [
        ("one of two equal bounds goes: another may be left", [], [{"id": 2}], 1),
        ("the only bound goes", [], [{"id": 1}], 1),
        ("a group goes whole", [], [{"id": 4}], 0),
        ("the bound goes and a better one comes", [{**ROWS[0], "v": 0}], [], 0),
        ("the bound moves inside", [{**ROWS[0], "v": 2}], [], 1),
        ("another column of the bound changes", [{**ROWS[0], "w": "q"}], [], 0),
        ("the bound leaves for another group", [{**ROWS[0], "g": "b"}], [], 1),
    ],
)
def test_a_group_is_recomputed_only_if_it_lost_its_bound(
    tmp_path: Path, spark: "SparkSession", why: str, come: list[Row], gone: list[Row], broken: int
) -> None:
    lake = lake_of(tmp_path, spark, "low: min(v), high: max(v), rows: count(w)")
    lake.put("sales", *come, gone=gone)
    assert recomputed(lake) == broken, why
    assert wrong(lake) == {}


def test_a_row_strictly_inside_the_bounds_goes_unread(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(tmp_path, spark, "low: min(v), high: max(v), eldest: first(w ORDER BY v)")
    lake.put("sales", {"id": 9, "g": "a", "v": 3, "w": "q"})
    assert recomputed(lake) == 0
    lake.put("sales", gone=[{"id": 9}])
    assert recomputed(lake) == 0
    assert wrong(lake) == {}


def test_lists_and_sets_take_any_change(tmp_path: Path, spark: "SparkSession") -> None:
    lake = lake_of(
        tmp_path,
        spark,
        "list: collect_list(w ORDER BY v desc), set: collect_set(w), kinds: count(distinct w)",
    )
    lake.put("sales", {**ROWS[1], "w": "q"}, {**ROWS[2], "v": 0}, gone=[ROWS[0]])
    assert recomputed(lake) is None
    (a,) = (r for r in lake.rows("found") if r["g"] == "a")
    assert (a["list"], a["set"], a["kinds"]) == (["q", "x"], ["q", "x"], 2)
    assert wrong(lake) == {}


@pytest.mark.usefixtures("real_spark")
def test_sketches_of_groups_that_lose_a_value_are_made_again(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(
        tmp_path, spark, "about: approx_count_distinct(w), middle: 'approx_percentile(v, 0.5)'"
    )
    lake.put("sales", gone=[{"id": 3}])
    assert recomputed(lake) == 1
    assert [v for v in lake.verdicts() if not v.is_equal] == []


TWO = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, w STRING"
  clicks:
    path: "clicks/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, n INT"
views:
  found:
    kind: cogroup
    key: [g]
    streams:
      sold: {from: sales, aggregates: {high: max(v), words: "count(distinct w)"}}
      clicked: {from: clicks, aggregates: {least: min(n), clicks: "count(*)"}}
      again: {from: clicks, where: n > 1, aggregates: {more: sum(n)}}
"""


def test_only_the_stream_that_lost_its_bound_is_read_again(
    new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "KEPT_BYTES", 0)
    lake = new_lake(TWO)
    lake.put("sales", *ROWS)
    lake.put("clicks", *({"id": i, "g": "a", "n": i} for i in (1, 2, 3)))
    lake.advance()
    lake.put("sales", gone=[{"id": 2}, {"id": 3}])
    with without_files(lake, "clicks"):
        state, _ = lake.advance()
    assert state.recomputed == 1
    assert [r for r in lake.rows("found") if r["g"] == "a"] == [
        {"g": "a", "high": 1, "words": 1, "least": 1, "clicks": 3, "more": 5}
    ]
    assert wrong(lake) == {}


@pytest.mark.usefixtures("real_spark")
def test_streams_of_any_number_are_shuffled_once(tmp_path: Path, spark: "SparkSession") -> None:
    lake = Lake(tmp_path, TWO, spark)
    state = nodes_of(lake.table("found"), lake.project.graph)[0].operator
    rows = {
        "shop.sales": spark.range(9).selectExpr("id", "'a' AS g", "1 AS v", "'x' AS w"),
        "shop.clicks": spark.range(9).selectExpr("id", "'a' AS g", "1 AS n"),
    }
    query: Any = state.query(rows, {})
    plan = query._jdf.queryExecution().executedPlan().toString()
    assert re.findall(r"(?:Exchange|Join)\b.*", plan) == [ANY], plan


def test_strategy_and_reason_are_reported(tmp_path: Path, spark: "SparkSession") -> None:
    lake = lake_of(tmp_path, spark, "n: sum(v), high: max(v)")
    lake.put("sales", gone=[{"id": 3}])
    reason = "groups are recomputed if they lose a value kept for max(v)"
    step, _ = explain(lake.project, lake.table("found"))
    kept, lost = "up to 2 rows in 0.0 MB of shop.found__state", "up to 3 rows in 0.0 MB"
    read = f"touched groups: {kept} and if needed, {lost} of shop.sales"
    assert (step.next, step.reason) == ("merge", f"{reason}; {read}")
    state, _ = lake.advance()
    assert (state.strategy, state.reason, state.recomputed) == ("merge", reason, 1)


SKETCHES = """
          about: approx_count_distinct(w)
          often: approx_top_k(w, 3)
          quarter: approx_percentile(v, 0.25)
          ends: "approx_percentile(v, array(0.0, 1.0))"
          words: collect_list(w ORDER BY v desc nulls last, w)
          head: first(v ORDER BY w desc, v nulls last)
          tail: last(v ORDER BY w)
"""
V, W, ID = column("v"), column("w"), (column("id"), "asc")


def quantile(rows: list[Row], rank: float) -> int | None:
    """The least value such that at least that share of values is no greater."""
    values = sorted(present(rows, "v"))
    return values[max(0, math.ceil(len(values) * rank) - 1)] if values else None


def ends(rows: list[Row]) -> list[int | None] | None:
    return [quantile(rows, 0.0), quantile(rows, 1.0)] if present(rows, "v") else None


def frequent(rows: list[Row]) -> list[Row] | None:
    found = present(rows, "w")
    by_count = sorted(set(found), key=lambda w: (-found.count(w), w))
    return [{"item": w, "count": found.count(w)} for w in by_count[:3]] or None


def by_sketches(state: State) -> list[Row]:
    sold: Aggregates = {
        "about": lambda rows: len(set(present(rows, "w"))),
        "often": frequent,
        "quarter": lambda rows: quantile(rows, 0.25),
        "ends": ends,
        "words": lambda rows: present(ordered(rows, (V, "desc nulls last"), (W, "asc"), ID), "w"),
        "head": lambda rows: ordered(rows, (W, "desc"), (V, "asc nulls last"), ID)[0]["v"],
        "tail": lambda rows: ordered(rows, (W, "asc"), ID)[-1]["v"],
    }
    return per_key({"s": (state["sales"], [G], sold)}, ("g",))


@pytest.mark.usefixtures("real_spark")
def test_sketches_lists_and_ends_equal_their_query(spark: "SparkSession") -> None:
    declared = SALES.replace("{AGGREGATES}", SKETCHES)
    sales = row(id=ids, g=groups, v=numbers, w=words)
    sketches = frozenset({"about", "quarter", "ends"})
    case = Case(
        "sketches", declared, "found", {"sales": sales}, lambda: by_sketches, sketches=sketches
    )
    hold(case, spark)


OWN = """
          product: tests.support.aggregators:Product(v)
          longest: tests.support.aggregators:Longest(w)
"""


def by_own_aggregators(state: State) -> list[Row]:
    sold: Aggregates = {
        "product": lambda rows: math.prod(present(rows, "v")) if present(rows, "v") else None,
        "longest": lambda rows: max(present(rows, "w"), key=lambda w: (len(w), w), default=None),
    }
    return per_key({"s": (state["sales"], [G], sold)}, ("g",))


@pytest.mark.usefixtures("real_spark")
def test_own_aggregators_equal_their_query(spark: "SparkSession") -> None:
    values = st.sampled_from([None, 0, 1, 2, -4])  # products that divide without a remainder
    sales = row(id=ids, g=groups, v=values, w=words)
    declared = SALES.replace("{AGGREGATES}", OWN)
    hold(Case("own", declared, "found", {"sales": sales}, lambda: by_own_aggregators), spark)


@pytest.mark.usefixtures("real_spark")
def test_own_aggregators_without_remove_are_recomputed_when_a_value_goes(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    own = "tests.support.aggregators"
    lake = lake_of(tmp_path, spark, f"product: '{own}:Product(v)', longest: '{own}:Longest(w)'")
    lake.put("sales", {**ROWS[1], "v": 2})
    assert recomputed(lake) == 1  # its w went and came, which an own aggregator can't tell
    lake.put("sales", {**ROWS[1], "id": 7})
    assert recomputed(lake) == 0
    assert [v for v in lake.verdicts() if not v.is_equal] == []


def test_keys_without_rows_stay_if_they_are_to_be_kept(new_lake: NewLake) -> None:
    kept = SALES.replace("key: [g]", "key: [g]\n    keep_empty: true")
    lake = new_lake(
        kept.replace("{AGGREGATES}", "{n: count(*), v: sum(v), low: min(v), list: collect_set(w)}")
    )
    lake.put("sales", *ROWS)
    lake.advance()
    lake.put("sales", gone=[{"id": 4}])
    lake.advance()
    empty = {"g": "b", "n": 0, "v": None, "low": None, "list": []}
    assert [r for r in lake.rows("found") if r["g"] == "b"] == [empty]
    lake.put("sales", {**ROWS[3], "v": 8})
    lake.advance()
    back = {"g": "b", "n": 1, "v": 8, "low": 8, "list": ["z"]}
    assert [r for r in lake.rows("found") if r["g"] == "b"] == [back]
    assert wrong(lake) == {}


def test_a_count_of_all_rows_may_have_the_name_of_a_column(new_lake: NewLake) -> None:
    declared = """
sources:
  sales: {path: "sales/{interval_start:%Y-%m-%d}/", key: [id], schema: "id INT, n INT"}
views:
  found:
    kind: cogroup
    key: [every]
    keep_empty: true
    streams: {sales: {from: sales, key: ["1"], aggregates: {n: count(*)}}}
"""
    lake = new_lake(declared)
    lake.put("sales", {"id": 1, "n": 5}, {"id": 2, "n": 5})
    lake.limit(computed_here_bytes=-1).advance()
    assert lake.rows("found") == [{"every": 1, "n": 2}]


def test_a_streams_sequence_orders_what_names_no_order(new_lake: NewLake) -> None:
    ordered_by_v = SALES.replace("from: sales", "from: sales\n        sequence: [v desc, w]")
    listed = "{list: collect_list(w), head: first(w), least: first(w ORDER BY v)}"
    lake = new_lake(ordered_by_v.replace("{AGGREGATES}", listed))
    lake.put("sales", *ROWS)
    lake.advance()
    (a,) = (r for r in lake.rows("found") if r["g"] == "a")
    assert a == {"g": "a", "list": ["x", "y", "x"], "head": "x", "least": "x"}


def test_sums_that_round_are_verified_within_their_error(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(tmp_path, spark, "v: approx_sum(v / 10), mean: approx_avg(v / 10)")
    for i in range(3):
        lake.put("sales", {"id": 9, "g": "a", "v": 10**9 + i, "w": ""})
        lake.advance()
    lake.put("sales", gone=[{"id": 9}])
    lake.advance()
    (a,) = (r for r in lake.rows("found") if r["g"] == "a")
    assert a["v"] == pytest.approx(1.1, rel=1e-6)
    assert [v for v in lake.verdicts() if not v.is_equal] == []
