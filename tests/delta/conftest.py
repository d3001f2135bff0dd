"""A session set up as a small batch's is."""

from typing import TYPE_CHECKING

import pytest
from tests.delta.tables import for_small_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def session(spark: "SparkSession") -> "SparkSession":
    return for_small_batches(spark)
