"""Bounds of a merge hold all keys of its rows, and name the partitions of filed columns."""

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from sluice.delta.log.position import head_as_found
from sluice.delta.writing.merge import arrow_bounds, spark_bounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    [("day", pa.int32()), ("id", pa.int64()), ("name", pa.string()), ("part", pa.int32())]
)
KEY = ("day", "id", "name", "part")


@pytest.mark.parametrize("seed", range(6))
def test_both_ways_bound_whole_numbers_without_nulls(
    tmp_path: Path, spark: "SparkSession", seed: int
) -> None:
    chance, uri = Random(seed), str(tmp_path / "table")
    write_deltalake(uri, SCHEMA.empty_table(), partition_by=["day"])
    before = head_as_found(uri)
    assert before is not None
    rows = [
        {
            "day": chance.randint(-3, 20),
            "id": None if seed == 1 and n == 2 else chance.randint(-5, 5),
            "name": "x",
            "part": None if seed == 2 else chance.randint(0, 2**31 - 1),
        }
        for n in range(seed + 3)
    ]
    table = pa.Table.from_pylist(rows, SCHEMA)
    days = ", ".join(map(str, sorted({row["day"] for row in rows})))
    expected = [f"t.`day` IN ({days})"]
    for name in ("id", "part"):
        values = [row[name] for row in rows]
        if None not in values:
            expected.append(f"(t.`{name}` >= {min(values)} AND t.`{name}` <= {max(values)})")
    assert spark_bounds(before, spark.createDataFrame(table), KEY) == [
        f"({e})" if e[0] == "(" else e for e in expected
    ]
    assert spark_bounds(before, spark.createDataFrame(table), ("name",)) == []
    here = arrow_bounds(DeltaTable(uri), table, KEY, quote="`")
    assert [one.partition("`")[2].partition("`")[0] for one in here] == [
        one.partition("`")[2].partition("`")[0] for one in expected
    ]
    assert here[0] == expected[0]
    assert arrow_bounds(DeltaTable(uri), table.slice(0, 0), KEY) == []
