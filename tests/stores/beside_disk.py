"""A shop in a store beside one on a disk, after the same day and its correction."""

from pathlib import Path
from typing import Any

from tests.crash.shop import CORRECTED, FIRST, Shop, day
from tests.stores.stored_shop import StoredShop

from sluice.engine.advance import Run
from sluice.operate.rebuild import rebuild
from sluice.operate.verify import verify
from sluice.spark.session import Spark


def state(shop: Shop) -> dict[str, Any]:
    """What a shop holds once a day was delivered and corrected."""
    for rows in (FIRST, CORRECTED):
        shop.land(1, *rows)
        shop.run(day(1))
    shop.check()
    return shop.state()


def hold_alike(stored: StoredShop, folder: Path) -> None:
    """The batches of a correction, `verify` and `rebuild` must end as in a new shop on a disk."""
    disk = Shop.create(folder)
    stored.run(day(1))
    stored.check()
    assert stored.state() == state(disk)
    project, spark = stored.project, Spark(stored.project.spark)
    assert all(v.is_sound for v in verify(spark, project, project.graph.table("best")))
    for table in project.graph.tables.values():
        rebuild(spark, project, table, Run("test"))
    stored.check()
    assert stored.state()["rows"] == disk.state()["rows"]
