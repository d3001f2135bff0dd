"""Equal rows of a cogroup's input count as often as they are there, in a batch as in a build."""

from decimal import Decimal

import pytest
from tests.support.lake import NewLake, Row
from tests.support.rows import NOON

pytestmark = pytest.mark.usefixtures("real_spark")

VIEW = """
sources:
  clicks:
    path: "c/{interval_start:%Y-%m-%d}/"
    schema: "g STRING, least TINYINT, m DECIMAL(24, 12), d DOUBLE, f FLOAT, n INT"
views:
  found:
    kind: cogroup
    key: [g]
    streams:
      s:
        from: clicks
        aggregates:
          rows: count(*)
          least: sum(least)
          m: sum(m)
          d: sum(d)
          f: sum(f)
          middle: approx_percentile(n, 0.5)
          middle_d: approx_percentile(d, 0.5)
          product: tests.support.aggregators:Product(n)
"""
SMALL = {"m": Decimal("0.000000000007"), "d": 3e-12, "f": 2.0**-34}
TWO = {"g": "a", "least": -128, "n": 2, **SMALL}


def clicks(count: int, of: Row, first: int = 0) -> list[Row]:
    """So many equal rows, which only their hidden identity distinguishes."""
    return [
        {**of, "_sluice_interval": NOON, "_sluice_id": f"{i:03}"}
        for i in range(first, first + count)
    ]


def test_equal_rows_of_one_batch_all_count(new_lake: NewLake) -> None:
    lake = new_lake(VIEW)
    lake.put("clicks", *clicks(1, {**TWO, "n": 7}))
    lake.advance()
    lake.put("clicks", *clicks(5, TWO, first=1))
    lake.advance()
    (found,) = lake.rows("found")
    assert found["m"] == 6 * SMALL["m"]
    assert (found["d"], found["f"]) == pytest.approx((1.8e-11, 6 * 2.0**-34), rel=1e-6)
    assert (found["middle"], found["middle_d"]) == (2, 3e-12)
    assert (found["rows"], found["least"], found["product"]) == (6, -768, 7 * 2**5)
    lake.put("clicks", gone=clicks(3, {}, first=1))
    lake.advance()
    assert [v for v in lake.verdicts() if not v.is_equal] == []
    (found,) = lake.rows("found")
    assert (found["least"], found["m"], found["product"]) == (-384, 3 * SMALL["m"], 7 * 2**2)
