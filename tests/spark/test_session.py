"""Settings of a session follow the size of what is read."""

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sluice.declare.settings import SparkSettings
from sluice.errors import MissingDependency
from sluice.limits import Limits
from sluice.spark.engine import too_large
from sluice.spark.session import LARGE, SMALL, Spark


@pytest.mark.usefixtures("real_spark")
def test_a_large_batch_is_set_up_as_one_also_after_a_small_one(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    other = Spark(SparkSettings()).sibling()
    for settings, small in ((SMALL, True), (LARGE, False), (SMALL, True)):
        session = other.tune(small=small)
        assert {name: session.conf.get(name, None) for name in SMALL} == dict(
            dict.fromkeys(SMALL), **settings
        )
    assert LARGE.keys() < SMALL.keys()
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_values_no_expression_takes_have_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.extras.is_installed", lambda extra: extra != "spark")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)

    def counted(session: SparkSession) -> object:
        return session.createDataFrame([("x",)], "n STRING").selectExpr("cast(n AS INT)").collect()

    with pytest.raises(MissingDependency) as refused:
        Spark(SparkSettings()).best(counted, 0, Limits())
    assert "this small batch (the string 'x' as an integer) needs Spark" in refused.value.message
    assert refused.value.hint == (
        "guard the expression (try_cast, try_divide, nullif); to see its place, "
        "run: pip install 'sluice-views[spark]'"
    )


def test_a_part_that_the_client_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("pyspark.sql.connect.plan.ChunkedCachedLocalRelation")
    monkeypatch.delitem(sys.modules, "sluice.interpreter.local_session")
    with pytest.raises(
        MissingDependency, match=r"client 4.* cannot import .*ChunkedCached"
    ) as found:
        assert Spark(SparkSettings()).here
    assert "sluice doctor" in found.value.hint


def test_large_batches_without_spark_name_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.extras.is_installed", lambda extra: extra != "spark")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with pytest.raises(
        MissingDependency, match=r"^this batch \(3\.4 MB are read at once\) needs Spark"
    ):
        Spark(SparkSettings()).best(
            pytest.fail, 3_400_000, Limits(), why=too_large(3_400_000, 3_000_000)
        )


@pytest.mark.usefixtures("real_spark")
def test_what_a_project_sets_stands_whatever_the_size(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    conf = {"spark.sql.shuffle.partitions": "7"}
    other = Spark(SparkSettings(conf=conf)).sibling()
    other.session.conf.set("spark.sql.shuffle.partitions", "7")
    for small in (True, False):
        assert other.tune(small=small).conf.get("spark.sql.shuffle.partitions") == "7"
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_expressions_ask_java_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from py4j.java_gateway import JVMView

    ask, asked = JVMView.__getattr__, []
    monkeypatch.setattr(JVMView, "__getattr__", lambda jvm, n: (asked.append(n), ask(jvm, n))[1])
    column = F.transform(F.array(F.col("a"), F.lit(1)), lambda e: F.coalesce(e, F.lit(0)))
    assert "transform" in str(F.struct(column))
    assert [name for name in asked if SparkSession not in name] == []


@pytest.mark.usefixtures("real_spark")
def test_spark_keeps_the_logs_of_few_tables(spark: SparkSession, tmp_path: Path) -> None:
    logs = getattr(getattr(spark._jvm.org.apache.spark.sql.delta, "DeltaLog$"), "MODULE$")
    for number in range(60):
        logs.forTable(spark._jsparkSession, str(tmp_path / f"table{number}"))
    assert 0 < logs.cacheSize() <= 50
