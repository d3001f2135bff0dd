"""Views over views: a chain of kinds, and a diamond whose halves advance at different times."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from tests.support.contract import Case, hold
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, NewLake, Row, State, counted
from tests.support.oracle import column, grouped, top, total
from tests.support.rows import groups, ids, numbers, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHAIN = """
sources:
  comments:
    path: "c/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, region STRING, who STRING, v INT"
dimensions:
  names: {path: n/, schema: "who STRING, name STRING", key: [who]}
views:
  activity:
    kind: cogroup
    key: [region, who]
    streams: {c: {from: comments, aggregates: {comments: "count(*)", v: sum(v)}}}
  best: {kind: topk, from: activity, partition_by: [region], order_by: [comments desc], limit: 2}
  named:
    kind: lookup
    from: best
    join: [{dimension: names, on: who = names.who, type: left}]
    refresh: true
"""
WHO = st.sampled_from(["ann", "bob", "cy"])


def named(state: State) -> list[Row]:
    people = grouped(state["comments"], column("region"), column("who"))
    activity = [
        {"region": region, "who": who, "comments": len(rows), "v": total(rows, "v")}
        for (region, who), rows in people.items()
    ]
    by, order = [column("region")], [(column("comments"), "desc")]
    names = {r["who"]: r["name"] for r in state["names"]}
    return [
        {**r, "rank": rank, "name": names.get(r["who"])}
        for rank, r in top(activity, by, order, ["region", "who"], 2)
    ]


CASE = Case(
    "the people of each region with the most comments, by name",
    CHAIN,
    "named",
    {
        "comments": row(id=ids, region=groups, who=WHO, v=numbers),
        "names": row(who=WHO, name=st.sampled_from("xy")),
    },
    lambda: named,
)

DIAMOND = """
sources:
  sales: {path: "s/{interval_start:%Y-%m-%d}/", key: [id], schema: "id INT, g STRING, v INT"}
views:
  sums: {kind: cogroup, key: [g], streams: {s: {from: sales, aggregates: {v: sum(v)}}}}
  best: {kind: topk, from: sales, partition_by: [g], order_by: [v desc], limit: 1}
  both:
    kind: cogroup
    key: [g]
    streams:
      s: {from: sums, aggregates: {total: max(v)}}
      b: {from: best, aggregates: {greatest: max(v)}}
"""


def test_a_chain_of_kinds_equals_its_query(spark: "SparkSession") -> None:
    hold(CASE, spark)


@pytest.fixture
def diamond(new_lake: NewLake) -> Lake:
    """Both halves of it reflect the first sale."""
    lake = new_lake(DIAMOND)
    lake.put("sales", {"id": 1, "g": "a", "v": 1})
    lake.advance()
    return lake


def sums(lake: Lake) -> list[Row]:
    return [{c: r[c] for c in ("total", "greatest")} for r in lake.rows("both")]


def test_a_diamond_never_mixes_two_states_of_a_source(diamond: Lake) -> None:
    diamond.put("sales", {"id": 2, "g": "a", "v": 5})
    diamond.advance("sums")
    diamond.advance("both")
    assert sums(diamond) == [{"total": 1, "greatest": 1}]
    diamond.advance("best")
    diamond.advance("both")
    assert sums(diamond) == [{"total": 6, "greatest": 5}]


def test_halves_that_advance_at_their_own_pace_meet_in_the_end(diamond: Lake) -> None:
    for id_, views in [(2, ["sums"]), (3, ["sums", "both"]), (4, ["best", "both"])]:
        diamond.put("sales", {"id": id_, "g": "a", "v": id_})
        diamond.advance(*views)
    diamond.advance()
    assert sums(diamond) == [{"total": 10, "greatest": 4}]
    assert wrong(diamond) == {}


def test_a_change_below_the_top_moves_only_the_position(diamond: Lake) -> None:
    feed = diamond.feed("best")
    version = diamond.head("best").version
    diamond.put("sales", {"id": 2, "g": "a", "v": 0})
    state, report = diamond.advance("best")
    assert (state.inserted, report.outcome, report.version) == (1, "position", version + 1)
    assert counted(diamond.feed("best")) == counted(feed)
    assert {report.outcome for report in diamond.advance("best")} == {"unchanged"}
