"""Everything that needs no Spark, with lake and landing folder in a store."""

from pathlib import Path

import pytest
from tests.crash.shop import CORRECTED, FIRST, Shop, day
from tests.stores.stored_shop import StoredShop
from tests.support.proxy import Proxy
from tests.support.stores import Store, using

from sluice.delta.places.delta_rs import options
from sluice.delta.reading.landing import list_files
from sluice.report.publish import publish

COMMANDS = [
    (("status",), "shop.best"),
    (("doctor",), "nothing is wrong"),
    (("read", "sales"), "nut"),
    (("get", "totals", "a", "oil"), "0.50"),
    (("range", "totals", "--key-from", "a", "--key-to", "b"), "jam"),
    (("top", "best", "--partition", "shop=a"), "tea"),
    (("changes", "totals"), "update_postimage"),
    (("maintain",), "nothing is due"),
    (("validate",), "no mistakes"),
]


def test_a_lake_in_a_store_is_that_of_a_disk(corrected: StoredShop, tmp_path: Path) -> None:
    corrected.run(day(1))
    corrected.check()
    on_disk = Shop.create(tmp_path / "disk")
    for rows in (FIRST, CORRECTED):
        on_disk.land(1, *rows)
        on_disk.run(day(1))
    assert corrected.state() == on_disk.state()
    assert {outcome.split()[1] for outcome in corrected.run(day(1))} == {"unchanged"}


def test_commands_need_no_spark_there(corrected: StoredShop) -> None:
    corrected.run(day(1))
    for words, part in COMMANDS:
        done = corrected.sluice(*words)
        assert done.code == 0, (words, done.err)
        assert part in done.out, (words, done.out)


def test_the_report_is_written_beside_the_project(shop: StoredShop) -> None:
    shop.run(day(1))
    page = publish(shop.project)
    assert page.is_relative_to(shop.folder)
    assert "shop.best" in page.read_text()


def test_names_of_objects_may_have_spaces_and_any_letters(store: Store) -> None:
    place = store.place()
    names = ["a b.json", "Umsätze.json", "日本/x+y.json", "12:30.json", "50%.json", "#1.json"]
    for name in [*names, "_draft.json", ".hidden/x.json"]:
        store.put(f"{place}/landing/{name}", "{}")
    found = [
        f.uri.removeprefix(f"{store.uri(place)}/landing/")
        for f in list_files(f"{store.uri(place)}/landing")
    ]
    assert found == sorted(names)


def test_a_long_list_is_read_in_pages(store: Store, proxied: Proxy) -> None:
    place = store.place()
    for number in range(1_100):
        store.put(f"{place}/landing/{number:05}.json", "{}")
    with using(store.environ(proxied.endpoint)):
        proxied.clear()
        found = list_files(f"{store.uri(place)}/landing/")
        lists = [r for r in proxied.requests if r.is_list]
    assert len(found) == 1_100
    assert len(lists) <= 3


def test_missing_buckets_of_landings_are_no_empty_delivery(shop: StoredShop, store: Store) -> None:
    shop.prefix = store.uri("nowhere/")
    shop.define(shop.pipeline)
    done = shop.sluice("run", "shop", "--start", "2024-01-01", "--end", "2024-01-02")
    assert done.code == 2
    assert "bucket 'nowhere': there is no bucket of this name" in done.err
    assert list_files(f"{store.uri(store.place())}/landing/") == []


def test_intervals_list_their_folder_only(shop: StoredShop, store: Store, proxied: Proxy) -> None:
    for number in range(2, 20):
        shop.store.put(f"{shop.bucket}/landing/2024-01-{number:02}/sales.json", "{}")
    with using(store.environ(proxied.endpoint)):
        proxied.clear()
        shop.run(day(1))
        landing = [r for r in proxied.requests if r.is_list and "landing" in r.path]
    assert landing
    assert all("2024-01-01" in r.path for r in landing)


def test_conditional_writes_are_asked_for_and_no_secret_is_an_option() -> None:
    found = options("s3://bucket/lake")
    assert found is not None
    assert found["conditional_put"] == "etag"
    assert not any("secret" in name or "key" in name or "token" in name for name in found)
    assert options("/lake") is None


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("DeltaTable(", "delta/places/delta_rs.py"),
        ("DeltaStorageHandler(", "delta/places/delta_rs.py"),
        ("from_uri(", "declare/filesystems.py"),
    ],
)
def test_tables_and_files_are_opened_in_one_place(name: str, place: str) -> None:
    libs = Path(__file__).parents[2] / "libs" / "sluice"
    users = {str(p.relative_to(libs)) for p in libs.rglob("*.py") if name in p.read_text()}
    assert users == {place}
