"""Settings of a session follow the size of what is read."""

from typing import TYPE_CHECKING

import pytest

from sluice.declare.settings import SparkSettings
from sluice.errors import MissingDependency
from sluice.spark.session import LARGE, SMALL, Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_large_batch_is_set_up_as_one_also_after_a_small_one(spark: "SparkSession") -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    other = Spark(SparkSettings()).sibling()
    for settings, small in ((SMALL, True), (LARGE, False), (SMALL, True)):
        session = other.tune(small=small)
        assert {name: session.conf.get(name) for name in settings} == settings
    assert SMALL.keys() == LARGE.keys()
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_without_spark_a_value_that_no_expression_takes_has_a_hint_that_guards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sluice.extras.is_installed", lambda extra: extra != "spark")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)

    def divided(session: "SparkSession") -> object:
        return session.createDataFrame([(0,)], "n INT").selectExpr("1 / n AS n").collect()

    with pytest.raises(MissingDependency) as refused:
        Spark(SparkSettings()).best(divided, pytest.fail, is_small=True)
    assert "this small batch (a division by zero) needs Spark" in refused.value.message
    assert refused.value.hint == (
        "guard the expression (try_cast, try_divide, nullif); to see its place, "
        "run: pip install 'sluice[spark]'"
    )


def test_what_a_project_sets_stands_whatever_the_size(spark: "SparkSession") -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    conf = {"spark.sql.shuffle.partitions": "7"}
    other = Spark(SparkSettings(conf=conf)).sibling()
    other.session.conf.set("spark.sql.shuffle.partitions", "7")
    for small in (True, False):
        assert other.tune(small=small).conf.get("spark.sql.shuffle.partitions") == "7"
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
