"""Spark reads and commits in a store itself: as much of a batch as on a disk, by the same rules."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.crash.conftest import Pool
from tests.crash.shop import Shop, day, mended
from tests.delta.tables import ID_AND_V, Small, by_marking, by_spark
from tests.stores.beside_disk import hold_alike, state
from tests.stores.stored_shop import StoredShop
from tests.support.lake import CONF
from tests.support.proxy import COMMIT, Harm, Proxy, Rule
from tests.support.s3a import reach
from tests.support.stores import Store

pytestmark = pytest.mark.usefixtures("real_spark")

LIMITS = ("read_here_bytes", "few_tasks_bytes", "collected_bytes")
BY_SPARK = "lake: s3://{bucket}/lake\nspark: {{commit: spark, conf: {conf}}}\n"


@pytest.fixture
def corrected_by_spark(spark: "SparkSession", corrected: StoredShop, proxied: Proxy) -> StoredShop:
    """A shop into which a day was delivered; from here on its batches are Spark's.

    It reads nothing here of its own size.
    """
    large(corrected, spark, proxied)
    return corrected


def large(shop: StoredShop, spark: "SparkSession", proxied: Proxy) -> None:
    reach(spark, shop.store, proxied.endpoint)
    told = BY_SPARK.format(bucket=shop.bucket, conf=json.dumps(CONF))
    (shop.config / "sluice.yaml").write_text(told)
    shop.limits = replace(shop.limits, **dict.fromkeys(LIMITS, 0))


def test_batches_and_rebuilds_are_those_of_a_disk_though_commits_meet_harm(
    corrected_by_spark: StoredShop, proxied: Proxy, tmp_path: Path
) -> None:
    """Of three tables, the first request that commits has no answer, and the commit happens once.

    Objects are sent with checksums, for which Amazon asks where they are locked. A rebuild makes
    all tables; test_committers.py has first batches.
    """
    shop = corrected_by_spark
    harms = {"totals__state": Harm.LOST, "totals": Harm.DROPPED, "best": Harm.BUSY}
    rules = [Rule(harm, "PUT", f"/{name}{COMMIT}", times=1) for name, harm in harms.items()]
    with proxied.harming(*rules, Rule(Harm.UNCHECKED, "PUT")):
        hold_alike(shop, tmp_path / "disk")
        assert [proxied.done[harm] for harm in harms.values()] == [1, 1, 1]
        names = [r.name for r in proxied.requests if r.harm == Harm.UNCHECKED]
    assert any(name.endswith(".parquet") for name in names)
    assert any(re.search(COMMIT, name) for name in names)
    assert {o.split()[1] for o in shop.run(day(1))} == {"unchanged"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The state of a shop on a disk whose runs went through."""
    return state(Shop.create(tmp_path_factory.mktemp("disk") / "shop"))


@pytest.fixture
def workers(remote: str, tmp_path: Path) -> Iterator[Pool]:
    pool = Pool(tmp_path / "workers", remote)
    yield pool
    pool.stop()


def test_a_kill_before_a_commit_is_mended(
    corrected_by_spark: StoredShop, workers: Pool, undisturbed: dict[str, Any]
) -> None:
    """Its files lie in the store; after a commit, nothing does that tests/crash has not."""
    workers.killed(corrected_by_spark, day(1), at="committing:totals")
    mended(corrected_by_spark, undisturbed)


def test_rows_marked_here_are_left_out_by_spark_and_merged_over(
    spark: "SparkSession", store: Store, proxied: Proxy
) -> None:
    reach(spark, store, proxied.endpoint)
    lake = store.uri(f"{store.place()}/lake/shop")
    table = Small.create(lake, ID_AND_V, ["id"], by_marking(spark))
    table.commit(*[("insert", {"id": i, "v": f"v{i}"}) for i in range(9)])
    table.commit(("delete", {"id": 3, "v": "v3"}), ("update", {"id": 5, "v": "new"}))
    table.write = by_spark(spark)
    table.commit(("delete", {"id": 4, "v": "v4"}), ("update", {"id": 5, "v": "newer"}))
    rows = spark.read.format("delta").load(table.uri).orderBy("id").collect()
    expected = {**{i: f"v{i}" for i in range(9) if i not in (3, 4)}, 5: "newer"}
    assert {row["id"]: row["v"] for row in rows} == expected
