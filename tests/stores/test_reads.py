"""Reads from a store: requests and bytes of a `get`, a `fetch` and a `top`, which have bounds."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow.fs import FileSelector
from tests.crash.shop import day
from tests.stores.stored_shop import StoredShop
from tests.support.proxy import Proxy
from tests.support.stores import Store, using

import sluice
from sluice.delta.log import opened as tables
from sluice.delta.places.delta_rs import options
from sluice.delta.writing.own_commits import writer_properties
from sluice.kinds.window_store.reader import ReadOnlyWindowStore
from sluice.read.keyed import KeyedTable
from sluice.read.snapshot import Snapshot

ROWS, KEYS = 400_000, 1_000
OPENING = 4  # the last checkpoint, a list of the log, a commit, and its file
FOOTER, GROUP = 3, 4  # requests at most: a footer in two pieces and its size; a row group's columns


@pytest.fixture(scope="module")
def large(store: Store) -> str:
    """A table in one file of many row groups, by user and time, the newest first."""
    uri = f"s3://{store.place()}/steps"
    rng = np.random.default_rng(7)
    users = rng.integers(0, KEYS, ROWS).astype("int32")
    times = rng.integers(1_500_000_000_000_000, 1_500_600_000_000_000, ROWS)
    order = np.lexsort((-times, users))
    rows = pa.table(
        {
            "user": users[order],
            "window_start": pa.array(times[order]).cast(pa.timestamp("us", "UTC")),
            "_sluice_id": np.arange(ROWS),
            "amount": rng.random(ROWS),
        }
    )
    with using(store.environ()):
        write_deltalake(
            uri,
            rows,
            storage_options=options(uri),
            writer_properties=writer_properties(rows.schema),
        )
    return uri


def opened(uri: str) -> KeyedTable:
    return KeyedTable(Snapshot.open("steps", uri), ("user", "window_start", "_sluice_id"))


def said(proxied: Proxy) -> str:
    return str(Counter((r.method, r.name.rpartition("/")[2][:24]) for r in proxied.requests))


def test_a_fetch_reads_the_row_groups_of_its_key(store: Store, proxied: Proxy, large: str) -> None:
    with using(store.environ(proxied.endpoint)):
        proxied.clear()
        rows = list(
            ReadOnlyWindowStore(opened(large), ("user",)).fetch(key=500, reverse=True, limit=3)
        )
        found, sent = proxied.requests, proxied.sent
    assert len(rows) == 3
    assert len(found) <= OPENING + FOOTER + 2 * GROUP, said(proxied)
    assert sum(r.is_list for r in found) <= 1
    whole = sum(
        f.size
        for f in store.files.get_file_info(FileSelector(large.removeprefix("s3://")))
        if f.is_file
    )
    assert sent < whole / 10


def test_fetches_of_open_tables_read_their_rows(store: Store, proxied: Proxy, large: str) -> None:
    with using(store.environ(proxied.endpoint)):
        table = ReadOnlyWindowStore(opened(large), ("user",))
        list(table.fetch(key=500, limit=3))
        proxied.clear()
        list(table.fetch(key=700, limit=3))
        found, sent = proxied.requests, proxied.sent
    assert all(r.name.endswith(".parquet") for r in found), said(proxied)
    assert len(found) <= 2 * GROUP, said(proxied)
    assert sent < 500_000


def test_a_get_and_a_top_of_a_project(
    shop: StoredShop, store: Store, proxied: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run(day(1))
    with using(store.environ(proxied.endpoint)):
        for read in (
            lambda lake: lake.table("totals").get("a", "oil"),
            lambda lake: lake.top("best", {"shop": "a"}),
        ):
            proxied.clear()
            monkeypatch.setattr(tables, "_newest", {})  # as in a new process
            assert read(sluice.open(Path(shop.config)))
            assert len(proxied.requests) <= OPENING + 2 + FOOTER + GROUP, said(proxied)
            assert sum(r.is_list for r in proxied.requests) <= 1
            assert proxied.sent < 100_000
