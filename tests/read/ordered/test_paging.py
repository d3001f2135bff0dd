"""Pages of a read: each goes on behind the row at which the one before ended, come what may."""

from datetime import timedelta
from tempfile import TemporaryDirectory

import pyarrow as pa
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
    visits,
)
from tests.read.tables import day, keyed, placed, project_at, write, write_table

from sluice.errors import UsageError
from sluice.read.lake import Lake


def pages(read, size):
    """All rows, page by page."""
    after, found = None, []
    while page := list(rows := read(limit=size, after=after)):
        assert len(page) <= size
        found += page
        after = rows.cursor
    assert rows.cursor == after
    return found


@settings(max_examples=40, deadline=None)
@given(rows_of_commits, st.integers(1, 7), st.booleans(), st.booleans())
def test_pages_are_the_whole_read_cut(commits, size, reverse, filtered):
    where = "what <> 'b'" if filtered else None
    with TemporaryDirectory() as folder:
        store = newest_first_layout(commits, folder)
        whole = list(store.all(reverse=reverse, where=where))
        read = lambda **how: store.all(reverse=reverse, where=where, **how)  # noqa: E731
        assert pages(read, size) == whole
        streamed = store.all(reverse=reverse, where=where)
        taken = [next(streamed) for _ in range(min(size, len(whole)))]
        rest = list(read(limit=None, after=streamed.cursor))
        assert taken + rest == whole


def test_a_page_goes_on_where_the_last_ended_though_rows_came_and_went(tmp_path):
    store = month(tmp_path, users=2, per_day=4)
    first = store.fetch(key=1, reverse=True, limit=3)
    seen = [row["window_start"] for row in first]
    assert [(at.day, at.minute) for at in seen] == [(30, 3), (30, 1), (29, 3)]
    came = [(1, day(30, 12), "new"), (1, day(29) + timedelta(minutes=2), "behind"), (1, day(1), "")]
    write(tmp_path / "t", table_of(came, 90_000))
    DeltaTable(str(tmp_path / "t")).delete(f"window_start = '{seen[-1].isoformat()}'")
    second = store_at(tmp_path / "t").fetch(key=1, reverse=True, limit=2, after=first.cursor)
    assert [row["what"] for row in second] == ["behind", "usual"]


def test_of_rows_with_one_key_and_time_none_is_skipped_or_shown_twice(tmp_path):
    write(tmp_path / "t", table_of([(1, day(1), str(n)) for n in range(7)]))
    store = store_at(tmp_path / "t")
    assert [r["what"] for r in pages(store.all, 2)] == list("0123456")
    page = store.all(limit=3)
    next(page)
    assert [r["what"] for r in store.all(limit=2, after=page.cursor)] == ["1", "2"]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_pages_of_keys_with_both_zeros_skip_and_repeat_none(tmp_path, size):
    columns = [("k", pa.float64()), ("_sluice_nth", pa.int64()), ("what", pa.string())]
    values = [-1.5, 0.0, -0.0, 0.0, -0.0, 2.0, float("nan"), float("nan")]
    rows = {"k": values, "_sluice_nth": [0, 3, 2, 1, 0, 0, 1, 0], "what": list("adcbefhg")}
    write(tmp_path / "t", pa.table(rows, pa.schema(columns)))
    table = keyed(tmp_path / "t", "k", "_sluice_nth")
    assert [row["what"] for row in pages(table.all, size)] == list("aebcdfgh")


def test_a_cursor_also_stands_behind_batches(tmp_path):
    store = month(tmp_path, users=5, per_day=10)
    rows = store.all()
    next(rows)
    batch = next(rows.batches())
    whole = list(store.all())
    assert next(store.all(limit=1, after=rows.cursor)) == whole[batch.num_rows + 1]


def test_key_value_reads_have_pages_too(tmp_path):
    write(tmp_path / "t", table_of([(n, day(1), "x") for n in (3, 1, None, 2)]))
    table = keyed(tmp_path / "t", "user", "_sluice_id")
    for reverse in (False, True):
        whole = [row["user"] for row in table.range(reverse=reverse)]
        read = lambda **how: table.all(reverse=reverse, **how)  # noqa: B023, E731
        assert [row["user"] for row in pages(read, 1)] == whole
        assert whole == sorted(whole, key=lambda u: placed((u,)), reverse=reverse)


@pytest.mark.parametrize("cursor", ["", "???", "bm8", "eyJ3aG8iOiAiMSJ9", "WzFd"])
def test_what_is_no_cursor_of_the_read_is_refused(tmp_path, cursor):
    write(tmp_path / "t", table_of([(1, day(1), "a")]))
    with pytest.raises(UsageError, match="not a cursor of this read"):
        store_at(tmp_path / "t").all(after=cursor)


def test_a_refreshed_store_sees_what_came(tmp_path):
    project = project_at(tmp_path)
    write_table(project, "visits", visits([1]))
    store, table = Lake(project).window("visits"), Lake(project).table("visits")
    rows = store.all()
    write_table(project, "visits", visits([2]))
    assert len(list(store.refresh().all())) == 2
    assert table.refresh().count == 2
    assert (len(list(rows)), len(list(store.all())), table.count) == (1, 1, 1)
    assert store.refresh().refresh().version == 1
    assert Lake(project).table("visits", backward_iteration=True).refresh().backward_iteration


def test_rows_as_they_are_stored_have_pages_and_whole_row_groups_are_skipped(tmp_path):
    for first in (0, 40, 80):
        rows = [(n, day(1), "abc"[n % 3]) for n in range(first, first + 40)]
        write(tmp_path / "t", table_of(rows), group_rows=8)
    DeltaTable(str(tmp_path / "t")).delete("user = 47")
    for table in (keyed(tmp_path / "t", "user"), keyed(tmp_path / "t")):
        for where in (None, "what <> 'b'"):
            read = lambda **how: table.read(where=where, **how)  # noqa: B023, E731
            whole = list(read())
            assert len(whole) == (119 if where is None else 79)
            assert pages(read, 7) == whole
    last = table.read(limit=90)
    assert len(list(last)) == 90
    rest = table.read(after=last.cursor)
    assert len(list(rest)) == 29
    assert rest.touched.row_groups == 4
