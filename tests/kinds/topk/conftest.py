"""What several files of tests begin with."""

from typing import TYPE_CHECKING

import pytest
from tests.kinds.topk.rankings import Lakes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lakes(local_spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Lakes:
    return Lakes(local_spark, tmp_path_factory.mktemp("lakes"))
