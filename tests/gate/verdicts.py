"""Verdicts of the gate on a few rows."""

from typing import TYPE_CHECKING, Any

from tests.gate.rows import SCHEMA

from sluice.declare.table_spec import Expectation
from sluice.gate.gate import Gate
from sluice.gate.results import Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = [column.split()[0] for column in SCHEMA.split(", ")]


def rules(*expectations: Expectation) -> Gate:
    return Gate("retail.transactions", expectations)


def verdict_on(spark: "SparkSession", values: list[Any], *expectations: Expectation) -> Verdict:
    gate = rules(*expectations)
    return gate.check(gate.split(spark.createDataFrame([(v,) for v in values], "quantity INT")))
