"""Rows that a batch holds: whether few or many, they answer alike."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from sluice.delta.reading.local import nullable, to_arrow
from sluice.engine.rows import Held, Here, InSpark, has_elements, is_given, is_true

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPES = "k INT, change STRING, is_short BOOLEAN, broken ARRAY<STRING>"


def rows(spark: "SparkSession", *found: tuple[object, ...]) -> "DataFrame":
    return spark.createDataFrame(list(found), TYPES)


def read_here(frame: "DataFrame") -> Here:
    """Rows of a table that has a further column, read in this process."""
    types = nullable(frame.schema).add("further", "date")
    return Here(to_arrow(frame), frame.sparkSession, types)


@pytest.fixture(params=[Here.of, read_here, InSpark])
def held(request: pytest.FixtureRequest, spark: "SparkSession") -> Held:
    kept: Held = request.param(
        rows(
            spark,
            (1, "insert", False, []),
            (2, None, True, ["a", "b"]),
            (2, None, True, ["b"]),
            (None, "delete", False, []),
        )
    )
    return kept


def keys(held: Held) -> list[int | None]:
    return [row["k"] for row in held.rows.collect()]


def test_conditions_choose_rows_and_their_opposites_the_others(held: Held) -> None:
    assert keys(held.where(is_given("change"))) == [1, None]
    assert keys(held.where(~is_given("change"))) == [2, 2]
    assert keys(held.where(is_true("is_short"))) == [2, 2]
    assert keys(held.where(~has_elements("broken"))) == [1, None]
    assert held.has_any(is_true("is_short"))
    assert not held.where(is_given("change")).has_any(is_true("is_short"))


def test_rows_are_counted_and_so_are_their_groups(held: Held) -> None:
    assert held.count() == 4
    assert sorted(map(str, keys(held.distinct(["k"])))) == ["1", "2", "None"]
    assert held.where(has_elements("broken")).elements("broken") == (2, frozenset("ab"))
    assert held.where(is_given("change")).elements("broken") == (2, frozenset())


def test_other_rows_take_the_place_of_some(held: Held, spark: "SparkSession") -> None:
    others = rows(spark, (3, "update", None, ["c"]))
    whole = held.where(~is_true("is_short")).beside(others)
    found = whole.where(is_given("change")).changelog({"key": "k", "_change": "change"})
    table = found if isinstance(found, pa.Table) else to_arrow(found)
    assert table.to_pydict() == {"key": [1, None, 3], "_change": ["insert", "delete", "update"]}
