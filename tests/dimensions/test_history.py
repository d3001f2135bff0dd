"""The history of a dimension against brute force, load by load."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from tests.support.contract import PROFILES, SETTINGS
from tests.support.lake import Row, counted
from tests.support.rows import NOON, maybe, row

from sluice.dimensions.rows import BEGINNING, versions_by_column, versions_by_load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("real_spark")

LOADS = 6 if SETTINGS is PROFILES["deep"] else 3
CONFIG = settings(SETTINGS, max_examples=4 if LOADS == 3 else 60)
VALUES = row(price=maybe(st.integers(1, 2)), name=maybe(st.sampled_from(["x", "y"])))
DAYS = st.integers(0, 4).map(lambda n: NOON - timedelta(days=n))
PLAIN = "k STRING, price INT, name STRING"
OWN = "valid_from TIMESTAMP, valid_to TIMESTAMP, is_current BOOLEAN"
HISTORY = f"{PLAIN}, {OWN}"


def loads(keys: st.SearchStrategy[object]) -> st.SearchStrategy[list[dict[object, Row]]]:
    """Snapshots by key, one after the other."""
    return st.lists(st.dictionaries(keys, VALUES, max_size=3), min_size=LOADS, max_size=LOADS)


def moment(load: int) -> datetime:
    """The clock is set back now and then."""
    return NOON + timedelta(hours=(0, 3, 1, 1, 5, 4)[load])


def frame(spark: "SparkSession", rows: list[Row], columns: str) -> "DataFrame":
    schema = to_arrow_schema(StructType.fromDDL(columns), timezone="UTC")
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema))


def collected(rows: "DataFrame") -> list[Row]:
    return rows.toArrow().to_pylist()


def after(version: Row) -> datetime:
    """The first moment behind a version's last bound."""
    latest: datetime = max(version["valid_from"], version["valid_to"] or version["valid_from"])
    return latest + timedelta(microseconds=1)


class ByLoad:
    """A key's version ends with the load that no longer has it, and the next begins there."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    @property
    def keys(self) -> set[object]:
        return {r["k"] for r in self.rows}

    def load(self, snapshot: dict[object, Row], at: datetime) -> None:
        last = {k: max(after(r) for r in self.rows if r["k"] == k) for k in self.keys}
        standing = {}
        for current in [r for r in self.rows if r["is_current"]]:
            values = {c: current[c] for c in ("price", "name")}
            if snapshot.get(current["k"]) == values:
                standing[current["k"]] = current
            else:
                current.update(valid_to=max(at, after(current)), is_current=False)
        for key, values in snapshot.items():
            if key not in standing:
                since = max(at, last[key]) if key in last else BEGINNING
                own = {"valid_from": since, "valid_to": None, "is_current": True}
                self.rows.append({"k": key, **values, **own})


@CONFIG
@given(snapshots=loads(st.sampled_from(["p", "q"])))
def test_versions_begin_and_end_with_the_loads(
    spark: "SparkSession", snapshots: list[dict[object, Row]]
) -> None:
    expected, history = ByLoad(), frame(spark, [], HISTORY)
    for i, snapshot in enumerate(snapshots):
        loaded = frame(spark, [{"k": k, **v} for k, v in snapshot.items()], PLAIN)
        rows = collected(versions_by_load(history, loaded, ("k",), moment(i)))
        expected.load(snapshot, moment(i))
        assert counted(rows) == counted(expected.rows)
        history = frame(spark, rows, HISTORY)


def by_column(old: list[Row], snapshot: list[Row], at: datetime) -> list[Row]:
    """A version lasts until its key's next; a key that is gone ends now, or when it first went."""
    stated = {(r["k"], r["valid_from"]): r for r in snapshot}
    versions = {**{(r["k"], r["valid_from"]): r for r in old}, **stated}
    present = {key for key, _ in stated}
    found = []
    for (key, since), values in versions.items():
        later = [start for k, start in versions if k == key and start > since]
        until = min(later, default=None)
        if until is None and key not in present:
            until = values["valid_to"] or at
        own = {"valid_from": since, "valid_to": until, "is_current": until is None}
        found.append({c: values[c] for c in ("k", "price", "name")} | own)
    return found


@CONFIG
@given(snapshots=loads(st.tuples(st.sampled_from(["p", "q"]), DAYS)))
def test_versions_begin_when_their_column_says(
    spark: "SparkSession", snapshots: list[dict[object, Row]]
) -> None:
    expected: list[Row] = []
    history = frame(spark, [], HISTORY)
    for i, snapshot in enumerate(snapshots):
        stated = [{"k": k, "valid_from": since, **v} for (k, since), v in snapshot.items()]
        loaded = frame(
            spark, [{**r, "since": r["valid_from"]} for r in stated], f"{PLAIN}, since TIMESTAMP"
        )
        with_column = history.selectExpr(*PLAIN_NAMES, "valid_from AS since", *OWN_NAMES)
        versions = versions_by_column(with_column, loaded, ("k",), "since", moment(i))
        rows = collected(versions.drop("since"))
        expected = by_column(expected, stated, moment(i))
        assert counted(rows) == counted(expected)
        history = frame(spark, rows, HISTORY)


PLAIN_NAMES, OWN_NAMES = (
    [column.split()[0] for column in columns.split(", ")] for columns in (PLAIN, OWN)
)
