"""A store must let only one of several commits of a version win, or no table is kept there."""

import pytest
from tests.crash.shop import day
from tests.stores.stored_shop import StoredShop
from tests.support.proxy import Harm, Proxy, Rule
from tests.support.stores import Store, using

from sluice.delta.places.delta_rs import is_table
from sluice.delta.places.table_files import RIVALS, _check_lake, check_exclusive, winners
from sluice.errors import SluiceError, StoreRefused


def blind(proxied: Proxy):
    """The store lets several win: two rivals at least meet before one of their commits is there."""
    return proxied.harming(Rule(Harm.BLIND, "PUT", r"/_delta_log/0{19}1\.json$"))


def test_of_many_commits_of_one_version_one_wins(store: Store) -> None:
    bucket = store.place()
    assert [winners(f"{store.uri(bucket)}/t{nth}") for nth in range(3)] == [1, 1, 1]
    assert store.names(bucket) == []


def test_a_store_that_lets_several_win_is_refused_before_a_table_is_made(
    store: Store, proxied: Proxy, shop: StoredShop
) -> None:
    refused = pytest.raises(SluiceError, match=f"of {RIVALS} commits of one version win")
    with using(store.environ(proxied.endpoint)), blind(proxied), refused:
        shop.run(day(1))
    assert not is_table(shop.uri("sales"))


def test_tested_lakes_cost_each_process_a_small_file(store: Store, proxied: Proxy) -> None:
    uri = f"{store.uri(store.place())}/lake/shop/sales"
    with using(store.environ(proxied.endpoint)):
        check_exclusive(uri)
        _check_lake.cache_clear()  # like another process
        proxied.clear()
        check_exclusive(uri)
        check_exclusive(uri)
    found = proxied.requests
    assert {r.name.rpartition("/")[2] for r in found} == {"exclusive.json"}
    assert len(found) <= 2  # pyarrow asks for the size first


def test_other_endpoints_are_tested_despite_a_copied_note(store: Store, proxied: Proxy) -> None:
    uri = f"{store.uri(store.place())}/lake/shop/sales"
    check_exclusive(uri)
    with using(store.environ(proxied.endpoint)), blind(proxied), pytest.raises(StoreRefused):
        check_exclusive(uri)
