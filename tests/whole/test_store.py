"""A delivery and its correction with lake and landing folder on a server that speaks S3."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.shop import CORRECTED, FIRST, Shop, day
from tests.stores.stored_shop import StoredShop
from tests.support.stores import Store, using

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def shop(whole_store: Store, tmp_path: Path) -> Iterator[StoredShop]:
    with using(whole_store.environ()):
        yield StoredShop.begin(tmp_path / "stored", whole_store)


def test_a_correction_in_a_store_ends_as_on_a_disk(shop: StoredShop, tmp_path: Path) -> None:
    on_disk = Shop.create(tmp_path / "disk")
    for lake in (shop, on_disk):
        for rows in (FIRST, CORRECTED):
            lake.land(1, *rows)
            lake.run(day(1))
    shop.check()
    assert shop.state() == on_disk.state()
    assert {outcome.split()[1] for outcome in shop.run(day(1))} == {"unchanged"}
