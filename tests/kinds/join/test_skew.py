"""A value with very many matches is right, and named where it multiplies rows."""

import pytest
from tests.kinds.join.cases import DECLARED
from tests.support.in_duckdb import wrong
from tests.support.lake import NewLake

SHOWN = "{id: orders.id, pid: people.pid}"
VIEW = (
    f"  both: {{kind: join, left: orders, right: people, type: left, on: [k], select: {SHOWN}}}\n"
)


def test_a_value_that_multiplies_rows_beyond_the_bound_is_named(
    new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.kinds.join.operator.MULTIPLIED_ROWS", 3)
    lake = new_lake(DECLARED + VIEW)
    lake.put("orders", *({"id": i, "k": 7} for i in (1, 2)), *({"id": i} for i in range(3, 9)))
    lake.put("people", {"pid": 1, "k": 7})
    (built,) = lake.advance()
    assert built.warnings == (), "two rows of one value; rows without a value multiply nothing"
    lake.put("people", {"pid": 2, "k": 7}, {"pid": 3, "k": 7})
    (batch,) = lake.advance()
    assert batch.inserted == 4
    (warning,) = batch.warnings
    assert warning == (
        "shop.both: 4 of the rows that this batch wrote have the same value, k = 7; "
        "each change to it joins all of these rows again"
    )
    lake.put("people", {"pid": 1, "k": 7, "n": 3})
    assert [report.warnings for report in lake.advance()] == [()]


def test_a_value_with_thousands_of_matches_is_joined_whole(new_lake: NewLake) -> None:
    lake = new_lake(DECLARED + VIEW)
    lake.put("orders", *({"id": i, "k": 7} for i in range(3_000)))
    lake.put("people", {"pid": 1, "k": 7})
    assert [report.inserted for report in lake.advance()] == [3_000]
    lake.put("people", {"pid": 2, "k": 7}, gone=[{"pid": 1}])
    assert [(r.inserted, r.deleted) for r in lake.advance()] == [(3_000, 3_000)]
    assert wrong(lake) == {}
