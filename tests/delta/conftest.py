"""A session set up as a small batch's is."""

from typing import TYPE_CHECKING

import pytest

from sluice.spark.session import RUNTIME_CONF, SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def session(spark: "SparkSession") -> "SparkSession":
    for name, value in {**RUNTIME_CONF, **SMALL}.items():
        spark.conf.set(name, value)
    return spark
