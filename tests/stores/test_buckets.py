"""A lake in a bucket that keeps versions, lets nobody delete them, or is full."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.crash.shop import CORRECTED, FIRST, Shop, day
from tests.delta.tables import ID_AND_V, Small, a_position
from tests.stores.beside_disk import state
from tests.stores.stored_shop import StoredShop
from tests.support import buckets
from tests.support.proxy import Harm, Proxy, Rule
from tests.support.stores import Store, using

from sluice.delta.log.opened import open_version
from sluice.delta.places import folders
from sluice.delta.upkeep.maintenance import clean_log, vacuum
from sluice.delta.writing.commit import commit_arrow, create
from sluice.errors import ExitCode, SluiceError


def test_where_versions_are_kept_runs_are_those_of_a_disk(store: Store, tmp_path: Path) -> None:
    """Folders are removed there, too: that of a lake's first commits, and the lake."""
    bucket = "shop-retained"
    buckets.retained(store, bucket)  # which keeps all versions, and more strictly
    shop = StoredShop.begin(tmp_path / "store", store, f"{bucket}/place")
    assert state(shop) == state(Shop.create(tmp_path / "disk"))
    done = shop.sluice("doctor")
    assert (done.code, done.out.startswith("nothing is wrong")) == (0, True)
    kept = buckets.versions(store, bucket)
    folders.remove(shop.root)
    assert store.names(bucket) == []
    assert buckets.versions(store, bucket) == kept


def test_checkpoints_are_replaced_and_files_are_deleted_where_versions_are_kept(
    store: Store,
) -> None:
    bucket = "table-retained"
    buckets.retained(store, bucket)
    table = Small(f"{store.uri(bucket)}/lake/shop/totals", ["id"], commit_arrow)
    create(table.uri, ID_AND_V, a_position(0, kind="create"))
    for number in range(21):
        table.commit(("update" if number else "insert", {"id": 1, "v": f"{number}"}))
    before = buckets.versions(store, bucket)
    in_two_months = datetime.now(UTC) + timedelta(days=60)
    assert vacuum(table.head, table.head.version, datetime.now(UTC), timedelta(0)) > 20
    assert clean_log(table.uri, 20, in_two_months) == 20
    rows = open_version(table.uri).to_pyarrow_table()
    assert rows["v"].to_pylist() == ["20"]
    assert len([f for f in store.names(bucket) if f.endswith(".parquet")]) < 5
    after = buckets.versions(store, bucket)
    assert set(before) <= set(after)
    assert [name.rpartition("/")[2] for name, _ in after].count("_last_checkpoint") == 2


def test_a_version_that_is_retained_can_not_be_deleted(store: Store) -> None:
    """The tests' server keeps its word, or the test above shows nothing."""
    buckets.retained(store, "worm")
    store.put("worm/name", "1")
    [(name, version)] = buckets.versions(store, "worm")
    status, _ = buckets.signed(store, "DELETE", f"/worm/{name}", f"versionId={version}")
    assert status == 403


def test_forget_names_kept_versions(store: Store, corrected: StoredShop, tmp_path: Path) -> None:
    where = ("--where", "item = 'jam'")
    done = corrected.sluice("forget", "sales", *where)
    assert (done.code, "keeps earlier versions" in done.err) == (0, False)
    buckets.versioned(store, "remembers")
    shop = StoredShop.begin(tmp_path / "other", store, "remembers/place")
    shop.land(1, *FIRST)
    shop.run(day(1))
    done = shop.sluice("forget", "sales", *where)
    assert (done.code, "keeps earlier versions" in done.err) == (0, True)


@pytest.mark.usefixtures("impatient")
def test_a_quota_that_is_full_loses_nothing(store: Store, tmp_path: Path) -> None:
    shop = StoredShop.begin(tmp_path / "store", store, "small/place")
    shop.land(1, *FIRST)
    shop.run(day(1))
    shop.land(1, *CORRECTED)
    before = shop.state()
    buckets.filled(store, "small")
    with pytest.raises(SluiceError, match="if a quota is full") as failed:
        shop.run(day(1))
    assert failed.value.exit_code == ExitCode.RETRY
    assert shop.state() == before
    shop.check()
    buckets.lifted(store, "small")
    shop.run(day(1))
    assert shop.state() == state(Shop.create(tmp_path / "disk"))


def test_objects_are_sent_with_checksums(
    corrected: StoredShop, store: Store, proxied: Proxy
) -> None:
    """Amazon asks for one where objects are locked."""
    rule = Rule(Harm.UNCHECKED, "PUT")
    with using(store.environ(proxied.endpoint)), proxied.harming(rule):
        corrected.run(day(1))
        assert proxied.done[Harm.UNCHECKED]
    corrected.check()
