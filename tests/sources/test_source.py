"""What stands in a source's table, against brute force over all deliveries in any order."""

from typing import TYPE_CHECKING

import pytest
from tests.sources.cases import CASES
from tests.support.contract import Case, hold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sources_equal_their_query_after_any_delivery(case: Case, spark: "SparkSession") -> None:
    hold(case, spark)
