"""What several files of tests begin with."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.files.files import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def files(spark: "SparkSession", tmp_path: Path) -> Files:
    return Files(spark, tmp_path)
