"""What several files of tests begin with."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.files.files import Files


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path)
