"""Where Spark has no access, it computes what it is handed, and commits nothing.

So it is on Azure. On S3 these tests let it be so, to hold the same ways without Azurite.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.crash.shop import day
from tests.stores.beside_disk import hold_alike
from tests.stores.stored_shop import StoredShop

from sluice.declare.stores import S3, SCHEMES
from sluice.delta.writing.merge import check_spark_may_commit
from sluice.errors import UsageError

pytestmark = pytest.mark.usefixtures("real_spark")

BY_SPARK = "lake: {place}/lake\nspark: {{small_batches: spark}}\n"


@pytest.fixture
def by_spark(
    spark: SparkSession, corrected: StoredShop, monkeypatch: pytest.MonkeyPatch
) -> StoredShop:
    """A shop whose batches are Spark's from here on, which has no access to the store."""
    for scheme in S3.schemes:
        monkeypatch.setitem(SCHEMES, scheme, replace(S3, why_not_spark="it has no access"))
    shop = corrected
    place = shop.store.uri(shop.bucket)
    (shop.config / "sluice.yaml").write_text(BY_SPARK.format(place=place))
    shop.limits = replace(shop.limits, read_here_bytes=0, collected_bytes=0)
    return shop


def test_batches_and_rebuilds_are_those_of_a_disk(by_spark: StoredShop, tmp_path: Path) -> None:
    hold_alike(by_spark, tmp_path / "disk")


def test_more_than_this_process_may_hand_over_is_refused(by_spark: StoredShop) -> None:
    by_spark.limits = replace(by_spark.limits, computed_here_bytes=10)
    with pytest.raises(UsageError, match=r"more than Sluice reads for it \(10\)"):
        by_spark.run(day(1))


def test_spark_may_not_commit_there(by_spark: StoredShop, spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="Spark must not commit"):
        check_spark_may_commit(spark, by_spark.uri("sales"))
