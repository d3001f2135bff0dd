"""The order of keys: null first, mirrored, and bounds that may be of the first columns only."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.read.tables import placed

from sluice.read.key_order import (
    FIRST,
    LAST,
    UNKNOWN,
    Bounds,
    KeyColumns,
    KeyOrder,
    KeyRange,
    places,
)

keys = st.tuples(
    st.one_of(st.none(), st.integers(-3, 3)), st.one_of(st.none(), st.sampled_from("abc"))
)
SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string())])


def table_of(rows: list[tuple[int | None, str | None]]) -> pa.Table:
    return pa.Table.from_pylist([{"a": a, "b": b} for a, b in rows], SCHEMA)


@given(st.lists(keys), keys, st.booleans(), st.integers(1, 2))
def test_before_is_pythons_tuple_order(rows, bound, descending, width):
    order = KeyOrder(("a", "b"), descending)
    mask = order.before(table_of(rows), places(bound[:width])).to_pylist()
    limit = placed(bound[:width])
    expected = [
        placed(r[:width]) > limit if descending else placed(r[:width]) < limit for r in rows
    ]
    assert mask == expected


@given(st.lists(keys))
def test_descending_is_the_exact_mirror(rows):
    table = table_of(sorted(set(rows), key=placed))
    assert KeyOrder(("a", "b")).sort(table).to_pylist() == table.to_pylist()
    assert KeyOrder(("a", "b"), True).sort(table).to_pylist() == table.to_pylist()[::-1]


def test_places_of_both_zeros_and_of_all_nans_are_one():
    nans = np.array([0x7FF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    table = pa.table({"a": [0.0, -0.0, None, *nans], "b": ["x"] * 5})
    assert KeyOrder(("a", "b")).count(table) == 3
    assert KeyOrder(("a",)).count(pa.table({"a": pa.array([-0.0, 0.0, 1.0], pa.float32())})) == 2


@given(st.lists(keys, min_size=1), st.one_of(st.none(), keys), st.one_of(st.none(), keys))
def test_a_span_prunes_only_what_it_does_not_hold(rows, low, high):
    key_range = KeyRange(("a", "b"), low and places(low), high and places(high))
    kept = key_range.rows(table_of(rows)).num_rows
    inside = [
        r
        for r in rows
        if (low is None or placed(r) >= placed(low)) and (high is None or placed(r) <= placed(high))
    ]
    assert kept == len(inside)
    if kept:
        assert key_range.may_hold(
            {"a": bounds_of([a for a, _ in rows]), "b": bounds_of([b for _, b in rows])}
        )


def bounds_of(values):
    present = [v for v in values if v is not None]
    if not present:
        return Bounds()
    return Bounds(min(present), max(present), has_nulls=len(present) < len(values))


def test_no_row_precedes_the_best_place_of_its_unit():
    bounds = {"a": Bounds(1, 5, has_nulls=False), "b": UNKNOWN}
    assert KeyOrder(("a", "b")).best(bounds) == ((1, 1), FIRST)
    assert KeyOrder(("a", "b"), True).best(bounds) == ((1, 5), LAST)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ((5, 3), (5, 3), False),  # the second column's values begin at 10
        ((5, 12), (5, 12), True),
        ((5, 21), (5, 30), False),
        ((5, None), (5, 9), True),  # null precedes 10
        ((4, 3), (5, 3), True),  # between them, the second column may be anything
        ((5,), (5,), True),
        ((9, 12), (9, 12), False),
    ],
)
def test_a_key_of_several_columns_excludes_by_each(
    low: tuple[int | None, ...], high: tuple[int | None, ...], expected: bool
) -> None:
    bounds = {"a": Bounds(1, 8, has_nulls=False), "b": Bounds(10, 20, has_nulls=None in low)}
    assert KeyRange(("a", "b"), places(low), places(high)).may_hold(bounds) is expected


some_keys = st.one_of(st.none(), st.tuples(keys, st.integers(1, 2)).map(lambda k: k[0][: k[1]]))


@given(st.lists(keys), some_keys, some_keys, st.booleans())
def test_a_range_keeps_the_rows_between_its_bounds_and_excludes_no_unit_with_one(
    rows, low, high, is_open
):
    key_range = KeyRange(("a", "b"), low and places(low), high and places(high), is_open)

    def is_inside(row):
        above = low is None or (
            placed(row[: len(low)]) > placed(low)
            or (not is_open and placed(row[: len(low)]) == placed(low))
        )
        below = high is None or (
            placed(row[: len(high)]) < placed(high)
            or (not is_open and placed(row[: len(high)]) == placed(high))
        )
        return above and below

    inside = [row for row in rows if is_inside(row)]
    assert key_range.rows(table_of(rows)).to_pylist() == table_of(inside).to_pylist()
    bounds = {name: bounds_of([row[i] for row in rows]) for i, name in enumerate("ab")}
    assert key_range.may_hold(bounds) or not inside


@given(some_keys, some_keys)
def test_bounds_are_backward_if_their_common_columns_are(low, high):
    columns = KeyColumns.of("t", ("a", "b"), SCHEMA)
    width = min(len(low or ()), len(high or ()))
    expected = placed((low or ())[:width]) > placed((high or ())[:width])
    assert columns.are_backward(low, high) is expected
    if low is None and high is None:
        assert columns.between(low, high) == ()
    else:
        (found,) = columns.between(low, high)
        assert (found.low, found.high) == (low and places(low), high and places(high))


@given(keys, keys)
def test_a_place_precedes_others_strictly_and_mirrored(one, other):
    a, b = places(one), places(other)
    assert KeyOrder(("a", "b")).precedes(a, b) is (placed(one) < placed(other))
    assert KeyOrder(("a", "b"), True).precedes(a, b) is (placed(one) > placed(other))
