"""Settings of a session follow the size of what is read."""

from typing import TYPE_CHECKING

from sluice.declare.settings import SparkSettings
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


def test_what_a_project_sets_stands_whatever_the_size(spark: "SparkSession") -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    conf = {"spark.sql.shuffle.partitions": "7"}
    other = Spark(SparkSettings(conf=conf)).sibling()
    other.session.conf.set("spark.sql.shuffle.partitions", "7")
    for small in (True, False):
        assert other.tune(small=small).conf.get("spark.sql.shuffle.partitions") == "7"
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
