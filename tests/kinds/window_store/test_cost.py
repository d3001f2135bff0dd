"""What reads touch, at two sizes: the last rows of a key don't cost more in a larger store."""

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from tests.read.tables import day, keyed, write

from sluice.kinds.window_store.reader import ReadOnlyWindowStore
from sluice.read import snapshot

DAYS, KEYS = 5, 1_000
SMALL, LARGE = 400_000, 4_000_000
HOT, COLD = 0, KEYS - 1


def sealed(folder, rows):
    """Days as upkeep leaves them: one file each, by key, the newest first, groups of 5,000."""
    rng = np.random.default_rng(rows)
    shares = np.cumsum(1 / np.arange(1, KEYS + 1))
    each = rows // DAYS
    for number in range(1, DAYS + 1):
        begin = int(day(number).timestamp() * 1e6)
        keys = np.searchsorted(shares / shares[-1], rng.random(each)).astype("int32")
        times = begin + rng.integers(0, 86_400_000_000, each)
        order = np.lexsort((-times, keys))
        table = pa.table(
            {
                "user": keys[order],
                "window_start": pa.array(times[order]).cast(pa.timestamp("us", "UTC")),
                "_sluice_id": np.arange(each) + number * each,
                "_sluice_part": pa.array(np.full(each, 20170100 + number)),
            }
        )
        write(folder, table, partition_by=["_sluice_part"])
    return ReadOnlyWindowStore(keyed(folder, "user", "window_start", "_sluice_id"), ("user",))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cost")
    return [sealed(folder / str(rows), rows) for rows in (SMALL, LARGE)]


def touched(rows):
    list(rows)
    return rows.touched.files, rows.touched.row_groups


def assert_few(stores, **asked):
    """One file at any size; one row group, or two where a neighbour has rows in it as well."""
    for store in stores:
        files, groups = touched(store.fetch(key=HOT, limit=10, **asked))
        assert files == 1
        assert groups <= 2


def test_the_last_of_a_hot_key_touch_one_file_at_any_size(stores):
    assert_few(stores, reverse=True)
    assert_few(stores)


def test_so_they_do_within_a_range_of_times(stores):
    assert_few(stores, time_to=day(3, 12), reverse=True)
    assert_few(stores, time_from=day(2), time_to=day(4, 12))


def test_a_rare_key_touches_one_row_group_of_each_day_or_two(stores):
    for store in stores:
        files, groups = touched(store.fetch(key=COLD, reverse=True, limit=5_000))
        assert files == DAYS
        assert groups <= 2 * DAYS


def test_the_last_of_all_touch_the_newest_day(stores):
    for store in stores:
        assert touched(store.all(reverse=True, limit=100))[0] == 1


def test_little_is_fetched_of_what_is_searched(stores):
    rows = stores[0].all(reverse=True, limit=100, columns=["user"])
    list(rows)
    assert rows.touched.bytes < rows.touched.rows * 12  # times, and no ids


def test_a_whole_scan_holds_a_day_at_a_time(stores):
    store, pool = stores[0], pa.default_memory_pool()
    before, most = pool.bytes_allocated(), 0
    for batch in store.all(reverse=True).batches():
        most = max(most, pool.bytes_allocated() - before)
        del batch
    a_day = SMALL // DAYS * 40
    assert most < 2 * a_day


def test_the_order_holds_in_a_large_scan(stores):
    starts = stores[0].all(reverse=True, columns=["window_start"]).to_arrow()["window_start"]
    values = starts.cast(pa.int64()).to_numpy()
    assert len(values) == SMALL
    assert (np.diff(values) <= 0).all()
    assert starts[0].as_py() - starts[-1].as_py() < timedelta(days=DAYS)


def test_what_is_kept_of_files_is_bounded_by_its_size(stores, monkeypatch):
    """A scan of a long history keeps the footers of so many bytes, not of so many files."""
    kept = snapshot.footer.cache
    snapshot.footer.cache_clear()
    list(stores[0].all(limit=1, reverse=True))
    footers = [snapshot.footer(*key) for key in kept]
    assert kept.currsize == sum(footer.serialized_size for footer in footers) > 5_000
    monkeypatch.setattr(kept, "_Cache__maxsize", kept.currsize + 1)
    assert stores[0].all().to_arrow().num_rows == SMALL
    assert len(kept) == 1, "each of the five files has as much to say"
