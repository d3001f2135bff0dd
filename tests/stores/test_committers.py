"""Spark and delta-rs meet on one table in a store: of commits of one version, one wins."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake
from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.engine.committing.collected import MOST, RANKED, collected, hold
from tests.support.lake import NewLake
from tests.support.proxy import Proxy
from tests.support.s3a import reach
from tests.support.stores import Store

from sluice.declare.stores import S3
from sluice.delta.places.delta_rs import open_table, options
from sluice.delta.writing.merge import check_spark_may_commit
from sluice.errors import UsageError

pytestmark = pytest.mark.usefixtures("real_spark")

__all__ = ["collected"]
RIVALS = 16  # of each
LOST = "RemoteFileChangedException"
ONCE = CommitProperties(max_commit_retries=0)
SECOND = "_delta_log/00000000000000000001.json"


@pytest.fixture
def place(spark: SparkSession, store: Store, proxied: Proxy) -> str:
    """An empty place that Spark reaches."""
    reach(spark, store, proxied.endpoint)
    return f"s3://{store.place()}"


class ByLogStore:
    """Commits by the log store that Spark is told to use, without what Delta does before it."""

    def __init__(self, session: SparkSession, uri: str):
        self.jvm: Any = session._jvm
        self.conf = session.sparkContext._jsc.hadoopConfiguration()
        self.path = self.jvm.org.apache.hadoop.fs.Path(f"{uri}/{SECOND}")

    def commit(self, number: int) -> bool:
        """True if it won."""
        lines = self.jvm.java.util.ArrayList()
        lines.add(f'{{"commitInfo": {{"timestamp": {number}, "operation": "WRITE"}}}}')
        store = self.jvm.sluice.storage.ConditionalLogStore(self.conf)
        try:
            store.write(self.path, lines.iterator(), False, self.conf)
        except Py4JJavaError as error:
            if LOST not in str(error):
                raise
            return False
        return True


def begun(uri: str) -> str:
    write_deltalake(uri, pa.table({"n": pa.array([0])}), storage_options=options(uri))
    return uri


def test_of_commits_of_one_version_by_both_one_wins(spark: SparkSession, place: str) -> None:
    for nth in range(3):
        uri = begun(f"{place}/t{nth}")
        tables = [open_table(uri) for _ in range(RIVALS)]
        by_spark, ready = ByLogStore(spark, uri), Barrier(2 * RIVALS)

        def by_delta_rs(number: int, tables: list[Any] = tables, ready: Barrier = ready) -> bool:
            table = tables[number]
            ready.wait()
            try:
                table.create_write_transaction([], "append", table.schema(), commit_properties=ONCE)
            except CommitFailedError:
                return False
            return True

        def by_log_store(number: int, store: ByLogStore = by_spark, ready: Barrier = ready) -> bool:
            ready.wait()
            return store.commit(number)

        with ThreadPoolExecutor(2 * RIVALS) as threads:
            ways = (by_delta_rs, by_log_store)
            tries = [threads.submit(way, n) for n in range(RIVALS) for way in ways]
            assert sum(one.result() for one in tries) == 1
        assert open_table(uri).version() == 1


def test_no_commit_of_either_is_lost(spark: SparkSession, place: str) -> None:
    uri = begun(f"{place}/t")

    def by_delta_rs(number: int) -> Any:
        write_deltalake(
            open_table(uri),
            pa.table({"n": pa.array([number])}),
            mode="append",
            commit_properties=ONCE,
        )

    def by_spark(number: int) -> Any:
        rows = spark.newSession().createDataFrame([(number,)], "n BIGINT")
        rows.write.format("delta").mode("append").save(uri)

    def tried(way: Any, number: int) -> int:
        try:
            way(number)
        except CommitFailedError:
            return 0
        except (Py4JJavaError, PySparkException) as error:
            if LOST not in str(error):
                raise
            return 0
        return number

    with ThreadPoolExecutor(6) as threads:
        ways = [by_delta_rs, by_spark] * 3
        numbers = list(threads.map(tried, ways, range(1, 7)))
    expected = Counter([0, *filter(None, numbers)])
    assert any(numbers[1::2])
    assert Counter(open_table(uri).to_pyarrow_table()["n"].to_pylist()) == expected


def test_a_spark_that_is_set_up_otherwise_may_not_commit(spark: SparkSession) -> None:
    check_spark_may_commit(spark, "s3://bucket/lake/shop/sales")
    for name in S3.conf:
        other = spark.newSession()
        other.conf.set(name, "other")
        with pytest.raises(UsageError, match=f"{name} is other, not"):
            check_spark_may_commit(other, "s3://bucket/lake/shop/sales")
        check_spark_may_commit(other, "/lake/shop/sales")


def test_large_batches_stay_in_spark(new_lake: NewLake, place: str, collected: list[int]) -> None:
    """Of a view with a state; tests/engine/committing has views of every kind on a disk."""
    hold(new_lake(RANKED, f"{place}/lake", small_changelog=MOST), collected)
