"""What stands in a source's table, against brute force over all deliveries in any order."""

import pytest
from pyspark.sql import SparkSession
from tests.sources.cases import CASES
from tests.support.contract import Case, hold


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sources_equal_their_query_after_any_delivery(case: Case, spark: SparkSession) -> None:
    hold(case, spark)
