"""A dimension's history: which version of a key held when."""

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tests.dimensions.things import declared, landed
from tests.support.lake import Row, counted
from tests.support.landed import Landed, NewLanded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


def test_history_by_load_closes_what_changed_or_went(new_landed: NewLanded) -> None:
    lake = new_landed(declared("history: true"))
    states = [{1: 1, 2: 2}, {1: 9, 2: 2}, {1: 9}, {1: 9, 2: 3, 3: 0}]
    loads = []
    for state in states:
        began = datetime.now(UTC)
        landed(lake, *({"id": i, "v": v} for i, v in state.items()))
        loads.append((began, datetime.now(UTC)))
        assert_valid_now(lake, state)
    for state, (_, ended) in zip(states, loads, strict=True):
        then = valid_at(lake, ended)
        assert {i: v for i, v in then.items() if i != 3 or 3 in state} == state
    firsts = {r["id"]: r["valid_from"] for r in sorted(lake.rows("things"), key=newest_first)}
    assert (firsts[1], firsts[2], firsts[3]) == (BEGINNING,) * 3
    assert landed(lake, *({"id": i, "v": v} for i, v in states[-1].items())).inserted == 0


def newest_first(row: Row) -> float:
    return -(row["valid_from"] - BEGINNING).total_seconds()


def valid_at(lake: Landed, moment: datetime) -> dict[int, int]:
    """What the history says of that moment."""
    return {
        r["id"]: r["v"]
        for r in lake.rows("things")
        if r["valid_from"] <= moment and (r["valid_to"] is None or moment < r["valid_to"])
    }


def assert_valid_now(lake: Landed, state: dict[int, int]) -> None:
    current = {r["id"]: r["v"] for r in lake.rows("things") if r["is_current"]}
    assert current == state
    assert all(r["is_current"] == (r["valid_to"] is None) for r in lake.rows("things"))


def test_history_by_column_takes_versions_in_any_order(
    spark: "SparkSession", tmp_path: Path
) -> None:
    schema = "id INT, v INT, since DATE"
    history = "history: true, valid_from: since"
    versions = [
        {"id": i, "v": 10 * i + n, "since": str(date(2024, 1, 1) + timedelta(days=n))}
        for i in (1, 2)
        for n in range(4)
    ]
    random.Random(7).shuffle(versions)
    piecewise = Landed(tmp_path / "a", declared(history, schema), spark)
    for nth in range(3, len(versions) + 1, 2):
        landed(piecewise, *versions[:nth], versions[-1])
    whole = Landed(tmp_path / "b", declared(history, schema), spark)
    landed(whole, *versions)
    assert counted(piecewise.rows("things")) == counted(whole.rows("things"))
    row = next(r for r in whole.rows("things") if r["v"] == 11)
    assert (row["valid_from"].date(), row["valid_to"].date()) == (
        date(2024, 1, 2),
        date(2024, 1, 3),
    )
    assert landed(piecewise, *reversed(versions)).outcome == "unchanged"


def test_two_rows_of_a_key_from_one_day_are_one_too_many(new_landed: NewLanded) -> None:
    lake = new_landed(declared("history: true, valid_from: since", "id INT, v INT, since DATE"))
    one = {"id": 1, "v": 1, "since": "2024-01-01"}
    landed(lake, one, {**one, "v": 2}, {**one, "since": "2024-02-01"}, {**one, "since": None})
    assert sorted(r["valid_from"].month for r in lake.rows("things")) == [1, 2]
    assert [q["reason"] for q in lake.quarantine("things")] == [
        "another row has the same key (id, since)",
        "column since is null: the start of the row's validity is unknown",
    ]


def test_a_version_that_the_snapshot_forgot_stays_and_a_key_that_it_lacks_is_closed(
    new_landed: NewLanded,
) -> None:
    schema = "id INT, v INT, since DATE"
    lake = new_landed(declared("history: true, valid_from: since", schema))
    old, new = ({"id": 1, "v": n, "since": f"2024-0{n}-01"} for n in (1, 2))
    landed(lake, old, {"id": 2, "v": 1, "since": "2024-01-01"})
    landed(lake, new)
    found = {(r["id"], r["v"]): (r["valid_to"] is None) for r in lake.rows("things")}
    assert found == {(1, 1): False, (1, 2): True, (2, 1): False}
