"""What stands in a source's table, against brute force over all deliveries in any order."""

from typing import TYPE_CHECKING

import pytest
from tests.sources.cases import CASES
from tests.support.contract import Case, hold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_source_equals_its_query_after_any_deliveries(
    case: Case, spark: "SparkSession"
) -> None:
    hold(case, spark)
