"""The net change between two versions, against counting by hand."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.contract import SETTINGS

from sluice.changes import CHANGE_TYPE, WEIGHT, arrivals, as_inserts, between, net

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONFIG = settings(SETTINGS, max_examples=5 if SETTINGS.derandomize else 100)
COLUMNS = ("k", "v")
SCHEMA = "k STRING, v INT, other INT"
ROWS = st.tuples(st.sampled_from([None, "p"]), st.sampled_from([None, 1]), st.integers(0, 1))
SIGNS = {"insert": 1, "update_preimage": -1, "update_postimage": 1, "delete": -1}
FEEDS = st.lists(st.tuples(ROWS, st.sampled_from(list(SIGNS))), max_size=8)


def weights(rows: "DataFrame") -> dict[Any, int]:
    return {(r["k"], r["v"]): r[WEIGHT] for r in rows.collect()}


def without_zeros(counts: Counter[Any]) -> dict[Any, int]:
    return {row: n for row, n in counts.items() if n}


@CONFIG
@given(feed=FEEDS)
def test_what_came_and_went_cancels_out(spark: "SparkSession", feed: list[Any]) -> None:
    expected: Counter[Any] = Counter()
    for (k, v, _), kind in feed:
        expected[k, v] += SIGNS[kind]
    rows = spark.createDataFrame(
        [(*r, kind) for r, kind in feed], f"{SCHEMA}, {CHANGE_TYPE} STRING"
    )
    assert weights(net(rows, COLUMNS)) == without_zeros(expected)


@CONFIG
@given(old=st.lists(ROWS, max_size=5), new=st.lists(ROWS, max_size=5))
def test_two_states_differ_by_the_copies_of_each_row(
    spark: "SparkSession", old: list[Any], new: list[Any]
) -> None:
    expected = Counter(r[:2] for r in new)
    expected.subtract(r[:2] for r in old)
    before, after = (spark.createDataFrame(rows, SCHEMA) for rows in (old, new))
    assert weights(between(before, after, COLUMNS)) == without_zeros(expected)


def test_a_whole_table_is_the_change_from_nothing(spark: "SparkSession") -> None:
    rows = spark.createDataFrame([("p", 1, 0), ("q", 2, 0)], SCHEMA)
    assert weights(as_inserts(rows, COLUMNS)) == {("p", 1): 1, ("q", 2): 1}


def test_arrivals_are_the_new_images(spark: "SparkSession") -> None:
    feed = [("p", 1, 0, "update_preimage"), ("p", 2, 0, "update_postimage")]
    rows = spark.createDataFrame(feed, f"{SCHEMA}, {CHANGE_TYPE} STRING")
    assert [tuple(r) for r in arrivals(net(rows, COLUMNS)).collect()] == [("p", 2)]
