"""Tables of a store that a process has opened are known by the tag of their newest commit."""

from collections import Counter

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.crash.shop import day
from tests.stores.stored_shop import StoredShop
from tests.support.proxy import Proxy
from tests.support.stores import Store, using

from sluice.delta.log import opened as tables
from sluice.delta.log.opened import FAR, open_version
from sluice.delta.places.delta_rs import locate, options

IDLE, LISTED = 230, 30  # requests of a run with nothing new, and those of them that list


@pytest.fixture
def table(store: Store) -> str:
    uri = f"{store.uri(store.place())}/lake/shop/totals"
    append(uri, 1)
    return uri


def append(uri: str, n: int) -> None:
    """Commit a row, as another process does."""
    write_deltalake(uri, pa.table({"n": [n]}), mode="append", storage_options=options(uri))


def numbers(uri: str) -> list[int]:
    return sorted(open_version(uri).to_pyarrow_table()["n"].to_pylist())


def test_commits_of_others_are_seen(table: str) -> None:
    assert numbers(table) == [1]
    first = open_version(table)
    assert open_version(table) is first
    append(table, 2)
    append(table, 3)
    assert numbers(table) == [1, 2, 3]
    assert open_version(table, version=0) is first


def test_logs_far_ahead_are_reopened(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FAR > 2
    monkeypatch.setattr(tables, "FAR", 2)
    assert numbers(table) == [1]
    for n in (2, 3, 4):
        append(table, n)
    assert numbers(table) == [1, 2, 3, 4]
    assert open_version(table) is open_version(table)


def test_another_table_in_its_place_is_noticed(table: str, store: Store) -> None:
    assert numbers(table) == [1]
    store.files.delete_dir_contents(locate(table)[1])
    append(table, 7)
    assert numbers(table) == [7]
    assert open_version(table).version() == 0


def test_runs_without_news_ask_little(corrected: StoredShop, store: Store, proxied: Proxy) -> None:
    with using(store.environ(proxied.endpoint)):
        corrected.run(day(1))
        proxied.clear()
        assert {said.split()[1] for said in corrected.run(day(1))} == {"unchanged"}
        found = proxied.requests
    said = Counter((r.method, r.name.rpartition("/")[2][-5:]) for r in found)
    assert len(found) <= IDLE, said
    assert sum(r.is_list for r in found) <= LISTED
