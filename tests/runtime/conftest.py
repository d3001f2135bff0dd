"""What several files of tests begin with."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.runtime.files import Files
from tests.runtime.rankings import Lakes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lakes(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Lakes:
    return Lakes(spark, tmp_path_factory.mktemp("lakes"))


@pytest.fixture
def files(spark: "SparkSession", tmp_path: Path) -> Files:
    return Files(spark, tmp_path)
