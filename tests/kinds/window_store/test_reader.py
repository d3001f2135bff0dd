"""Window store reads against a brute-force reading of the same rows, and what they touch."""

from datetime import timedelta
from tempfile import TemporaryDirectory

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kinds.window_store.tables import (
    month,
    newest_first_layout,
    rows_of_commits,
    store_at,
    table_of,
    times,
)
from tests.read.tables import day, placed, write

from sluice.errors import UsageError


@settings(max_examples=80, deadline=None)
@given(
    rows_of_commits,
    st.one_of(st.none(), st.integers(1, 4)),
    st.one_of(st.none(), times),
    st.one_of(st.none(), times),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 5)),
    st.booleans(),
)
def test_a_fetch_is_the_sorted_rows_that_match(commits, user, low, high, reverse, limit, filtered):
    every = [
        (u, at, what, i) for i, (u, at, what) in enumerate(r for rows in commits for r in rows)
    ]
    expected = [
        {"user": u, "window_start": at, "what": what}
        for u, at, what, _ in sorted(every, key=lambda r: placed((r[1], r[0], r[3])))
        if (user is None or u == user)
        and (low is None or at >= low)
        and (high is None or at <= high)
        and (not filtered or what != "b")
    ]
    expected = expected[::-1] if reverse else expected
    with TemporaryDirectory() as folder:
        store = newest_first_layout(commits, folder)
        if low and high and low > high:
            expected = []
        found = store.fetch(
            key=user,
            time_from=low,
            time_to=high,
            reverse=reverse,
            limit=limit,
            where="what <> 'b'" if filtered else None,
        )
        assert list(found) == expected[:limit]


def test_reading_goes_on_only_as_far_as_it_is_asked(tmp_path):
    rows = month(tmp_path).all(reverse=True)
    days = [next(rows)["window_start"].day for _ in range(450)]
    assert days == [30] * 200 + [29] * 200 + [28] * 50
    assert rows.touched.files == 3


def test_a_filtered_read_stops_at_its_limit(tmp_path):
    found = month(tmp_path).fetch_all(reverse=True, limit=3, where="what = 'rare'")
    assert [row["window_start"].day for row in found] == [30, 30, 30]
    assert found.touched.files == 1


def test_key_ranges_and_single_rows(tmp_path):
    store = month(tmp_path, users=5, per_day=10)
    found = store.fetch(key_from=2, key_to=3, time_from=day(5), time_to=day(5, 23))
    assert [(r["user"], r["window_start"].minute) for r in found] == [
        (2, 2),
        (3, 3),
        (2, 7),
        (3, 8),
    ]
    assert store.fetch_one(2, day(5) + timedelta(minutes=7))["what"] == "usual"
    assert store.fetch_one(2, day(5)) is None
    assert store.fetch_one(2, "2017-01-05T00:07:00") == store.fetch_one(
        2, "2017-01-05T01:07:00+01:00"
    )


def test_of_duplicates_fetch_one_takes_the_last(tmp_path):
    write(tmp_path / "t", table_of([(1, day(1), "a"), (1, day(1), "b")]))
    assert store_at(tmp_path / "t").fetch_one(1, day(1))["what"] == "b"


def test_fetch_one_of_the_null_key_is_no_other_keys_row(tmp_path):
    write(tmp_path / "t", table_of([(1, day(1), "a")]))
    assert store_at(tmp_path / "t").fetch_one(None, day(1)) is None
    write(tmp_path / "t", table_of([(None, day(1), "b")]))
    assert store_at(tmp_path / "t").fetch_one(None, day(1))["what"] == "b"


def test_times_the_wrong_way_round_are_empty_unless_the_store_goes_backward(tmp_path):
    month(tmp_path, users=2, per_day=2)
    asked = {"time_from": day(3), "time_to": day(2)}
    assert list(store_at(tmp_path / "t").fetch_all(**asked)) == []
    backward = store_at(tmp_path / "t", backward_iteration=True)
    found = [row["window_start"] for row in backward.fetch_all(**asked)]
    minute = timedelta(minutes=1)
    assert found == [day(3), day(2) + minute, day(2)]
    assert next(backward.fetch_all(**asked, limit=1))["window_start"] == day(3)


def test_an_iterator_is_pinned_to_its_version(tmp_path):
    store = month(tmp_path, users=5, per_day=10)
    rows = store.all(reverse=True)
    first = next(rows)
    write(tmp_path / "t", table_of([(1, day(31), "new")], 10_000))
    DeltaTable(str(tmp_path / "t")).delete("user = 1")
    rest = list(rows)
    assert first["window_start"] == day(30) + timedelta(minutes=9)
    assert len(rest) == 299
    assert next(store_at(tmp_path / "t").all(reverse=True))["what"] == "usual"


def test_columns_can_be_chosen_and_hidden_ones_are_not_shown(tmp_path):
    store = month(tmp_path, users=5, per_day=10)
    assert store.schema.names == ["user", "window_start", "what"]
    assert next(store.fetch(key=1, columns=["what"])) == {"what": "usual"}
    batch = next(store.all(limit=2, columns=["user"]).batches())
    assert batch.to_pylist() == [{"user": 0}, {"user": 1}]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda s: s.fetch(key="x"), "'x' is not a value of column 'user'"),
        (lambda s: s.fetch(key=1, key_from=1), "either key, or key_from and key_to"),
        (
            lambda s: s.fetch(time_from="yesterday"),
            "'yesterday' is not a value of column 'window_start'",
        ),
        (lambda s: s.fetch(limit=-1), "limit must be 0 or more"),
        (lambda s: s.fetch(limit="5"), "limit must be 0 or more, not '5'"),
        (lambda s: s.fetch(limit=1.5), "limit must be 0 or more, not 1.5"),
        (lambda s: s.fetch(time_form="2017-01-01"), "'time_form'; did you mean 'time_from'"),
        (lambda s: s.all(revers=True), "did you mean 'reverse'"),
        (
            lambda s: s.fetch(time_from="0001-01-01T00:00:00+05:00"),
            "is not a value of column 'window_start'",
        ),
        (lambda s: s.fetch_one(1, None), "a key and a time"),
        (lambda s: s.fetch(where="total > 1"), "unknown column 'total'"),
        (lambda s: s.all(columns=["whatt"]), "did you mean 'what'"),
    ],
)
def test_what_can_not_be_asked_is_said_at_once(tmp_path, ask, message):
    write(tmp_path / "t", table_of([(1, day(1), "a")]))
    with pytest.raises(UsageError, match=message):
        ask(store_at(tmp_path / "t"))
