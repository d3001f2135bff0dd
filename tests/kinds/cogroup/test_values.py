"""Cogroups of dates and maps, of windows of windows, and with names that could meet others."""

from datetime import UTC, date, datetime

import pytest
from tests.support.lake import Lake, NewLake, Row

PLAIN = """
sources:
  sales:
    path: "s/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, day DATE, tags MAP<STRING, STRING>"
views:
"""
FOUND = PLAIN + "  found:\n    kind: cogroup\n    key: [g]\n"
DAYS = [date(2024, 1, 1), date(2024, 1, 3), date(2024, 2, 9)]


def kept(lake: Lake, view: str) -> list[Row]:
    """The view after three rows came and one of them changed."""
    lake.put("sales", *({"id": i, "g": "a", "v": i, "day": day} for i, day in enumerate(DAYS)))
    lake.advance()
    lake.put("sales", {"id": 2, "g": "a", "v": 5, "day": DAYS[2], "tags": [("b", "x"), ("a", "")]})
    lake.advance()
    return sorted(lake.rows(view), key=repr)


def test_names_of_streams_and_aggregates_do_not_meet_those_of_the_state(new_lake: NewLake) -> None:
    view = """
    streams:
      a: {from: sales, aggregates: {rows: sum(v), b__c: max(v)}}
      a__b: {from: sales, aggregates: {c: avg(v), c__n: "count(*)", n: min(v)}}
"""
    found = {"g": "a", "rows": 6, "b__c": 5, "c": 2.0, "c__n": 3, "n": 0}
    assert kept(new_lake(FOUND + view), "found") == [found]


def test_windows_of_windows_roll_up(new_lake: NewLake) -> None:
    view = """
  daily:
    kind: cogroup
    key: [g]
    window: {type: tumbling, time: day, size: 1 day}
    streams: {s: {from: sales, aggregates: {v: sum(v)}}}
  monthly:
    kind: cogroup
    key: [g]
    window: {type: tumbling, time: window_start, size: 1 month}
    streams: {s: {from: daily, aggregates: {v: sum(v), until: max(window_end)}}}
"""
    january, february, march = (datetime(2024, month, 1, tzinfo=UTC) for month in (1, 2, 3))
    until = [datetime(2024, *day, tzinfo=UTC) for day in ((1, 4), (2, 10))]
    assert kept(new_lake(PLAIN + view), "monthly") == [
        {"window_start": january, "window_end": february, "g": "a", "v": 1, "until": until[0]},
        {"window_start": february, "window_end": march, "g": "a", "v": 5, "until": until[1]},
    ]


def test_sessions_of_dates(new_lake: NewLake) -> None:
    view = """
    window: {type: session, time: day, gap: 2 days}
    streams: {s: {from: sales, aggregates: {v: sum(v)}}}
"""
    bounds = [((1, 1), (1, 5)), ((2, 9), (2, 11))]
    moments = [tuple(datetime(2024, *day, tzinfo=UTC) for day in pair) for pair in bounds]
    assert [
        (r["window_start"], r["window_end"], r["v"]) for r in kept(new_lake(FOUND + view), "found")
    ] == [(*moments[0], 1), (*moments[1], 5)]


@pytest.mark.usefixtures("real_spark")
def test_sketches_and_collections_of_maps(new_lake: NewLake) -> None:
    view = """
    streams:
      s:
        from: sales
        aggregates:
          tags: collect_list(tags ORDER BY v)
          middle: approx_percentile(v, 0.5)
          ends: approx_percentile(v, array(0.0, 1.0))
          often: approx_top_k(g, 1)
"""
    (found,) = kept(new_lake(FOUND + view), "found")
    assert [sorted(tags) for tags in found["tags"]] == [[("a", ""), ("b", "x")]]
    assert (found["middle"], found["ends"]) == (1, [0, 5])
    assert found["often"] == [{"item": "a", "count": 3}]


def test_initial_values_take_their_aggregates_type_and_keys_are_selected_once(
    new_lake: NewLake,
) -> None:
    view = """
    streams:
      never:
        from: sales
        where: v > 100
        aggregates:
          n: count(*)
          since: min(day)
          mean: avg(v)
          tags: collect_set(g)
          ids: collect_set(id)
          most: sum(cast(v as decimal(20, 0)))
        initial:
          {n: null, since: 2024-01-02, mean: 1, tags: [x], ids: [7], most: 100000000000000000000}
      s: {from: sales, aggregates: {rows: count(*)}}
    select: [n, since, mean, tags, ids, most, g]
"""
    (found,) = kept(new_lake(FOUND + view), "found")
    assert list(found) == ["g", "n", "since", "mean", "tags", "ids", "most"]
    assert [*found.values()] == ["a", None, date(2024, 1, 2), 1.0, ["x"], [7], 10**20]
