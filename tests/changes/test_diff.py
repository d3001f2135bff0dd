"""The difference between old and new rows, against brute force."""

import math
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.contract import SETTINGS
from tests.support.lake import Row, counted

from sluice.changes import CHANGE, diff

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = settings(SETTINGS, max_examples=5 if SETTINGS.derandomize else 100)
SCHEMA = "k STRING, n INT, v DOUBLE, w STRING"
KEYS = st.tuples(st.sampled_from([None, "p", "q"]), st.sampled_from([None, 1]))
VALUES = st.tuples(st.sampled_from([None, 0.0, 1.5, math.nan]), st.sampled_from([None, "", "x"]))
TABLES = st.dictionaries(KEYS, VALUES, max_size=5)
NESTED = "k INT, m MAP<STRING, INT>, l ARRAY<MAP<STRING, INT>>, s STRUCT<m: MAP<STRING, INT>>"


def as_rows(table: dict[Any, Any]) -> list[Any]:
    return [(*key, *values) for key, values in table.items()]


def brute_force(old: dict[Any, Any], new: dict[Any, Any]) -> list[Row]:
    found = []
    for key in {**old, **new}:
        if key not in new:
            kind = "delete"
        elif key not in old:
            kind = "insert"
        elif repr(old[key]) != repr(new[key]):
            kind = "update"
        else:
            continue
        values = new.get(key, old.get(key))
        found.append(dict(zip(("k", "n", "v", "w", CHANGE), (*key, *values, kind), strict=True)))
    return found


@CONFIG
@given(old=TABLES, new=TABLES)
def test_only_rows_that_differ_are_in_it(
    spark: "SparkSession", old: dict[Any, Any], new: dict[Any, Any]
) -> None:
    before, after = (spark.createDataFrame(as_rows(t), SCHEMA) for t in (old, new))
    rows = [r.asDict() for r in diff(before, after, ("k", "n")).collect()]
    assert counted(rows) == counted(brute_force(old, new))


def test_ignored_columns_make_no_row_different(spark: "SparkSession") -> None:
    old = spark.createDataFrame([(1, 5, "old")], "k INT, v INT, batch STRING")
    new = spark.createDataFrame([(1, 5, "new")], "k INT, v INT, batch STRING")
    assert diff(old, new, ("k",), ignore=["batch"]).collect() == []


def test_maps_are_equal_whatever_the_order_of_their_entries(spark: "SparkSession") -> None:
    one, other = {"a": 1, "b": None}, {"b": None, "a": 1}
    old = [(1, one, [one, None], (one,)), (2, one, None, None), (3, None, [], (None,))]
    new = [(1, other, [other, None], (other,)), (2, one, None, (None,)), (3, {}, [], (None,))]
    rows = diff(spark.createDataFrame(old, NESTED), spark.createDataFrame(new, NESTED), ("k",))
    assert {(r["k"], r[CHANGE]) for r in rows.collect()} == {(2, "update"), (3, "update")}


def test_columns_in_another_order_are_the_same(spark: "SparkSession") -> None:
    old = spark.createDataFrame([(1, "x")], "k INT, v STRING")
    new = spark.createDataFrame([("x", 1)], "v STRING, k INT")
    assert diff(old, new, ("k",)).collect() == []
