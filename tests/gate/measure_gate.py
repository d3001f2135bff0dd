"""Times ten row rules on one cached batch, by the gate and by Great Expectations.

python -m tests.gate.measure_gate 100000
"""

import sys
import time
from collections.abc import Callable

from pyspark.sql import SparkSession
from tests.gate.rows import expect

from sluice.gate import engine
from sluice.gate.gate import Gate

RULES = (
    expect("column_values_to_not_be_null", column="household"),
    expect("column_values_to_not_be_null", column="department", mostly=0.5),
    expect("column_values_to_be_in_set", column="department", value_set=["D1", "D2"]),
    expect("column_values_to_not_be_in_set", column="household", value_set=[0]),
    expect("column_values_to_be_between", column="quantity", min_value=0, max_value=7),
    expect("column_values_to_be_between", column="price", min_value=0),
    expect("column_values_to_be_between", column="at", min_value="2017-01-01"),
    expect("column_values_to_match_regex", column="department", regex="^[A-Z]"),
    expect("column_value_lengths_to_be_between", column="department", min_value=1, max_value=5),
    expect("column_pair_values_a_to_be_greater_than_b", column_A="price", column_B="quantity"),
)
COLUMNS = (
    "CAST(id % 2500 AS INT) household",
    "CAST(id % 9 AS INT) quantity",
    "CAST(id % 1000 AS DECIMAL(12,2)) price",
    "CASE WHEN id % 4 > 0 THEN concat('D', id % 7) END department",
    "timestamp_seconds(1483228800 + id) at",
)


def timed(label: str, call: Callable[[], object]) -> None:
    """Prints how long the call took, first and later."""
    took = []
    for _ in range(4):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    print(f"{label:24} first {took[0]:.2f} s, later {min(took[1:]):.2f} s")


def main(rows: int) -> None:
    """Both gates on the same batch."""
    spark = SparkSession.Builder().master("local[4]").config("spark.ui.enabled", "false")
    session = spark.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    batch = session.range(rows).repartition(4).selectExpr(*COLUMNS).cache()
    batch.count()
    gate = Gate("retail.transactions", RULES)
    timed("gate", lambda: gate.check(gate.split(batch)))
    start = time.perf_counter()
    engine.load()
    print(f"{'import of GX':24} {time.perf_counter() - start:.2f} s")
    timed("Great Expectations", lambda: engine.validate(batch, RULES))
    session.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
