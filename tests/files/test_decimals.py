"""A decimal with more places than declared is quarantined with its reason, not rounded."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.support.landed import NewLanded

DECLARED = "dimensions:\n  things: {path: landing/things/, format: %s, key: [id], schema: '%s'}\n"
SCHEMA = "id INT, v DECIMAL(6, 2)"
TEXTS = ["1.5", "1.005", "-0.001", "1.500", "2.3000000000000003", "9999.99", "9999.994", "1e-3"]
FITTING = {0: "1.50", 3: "1.50", 4: "2.30", 5: "9999.99"}


def of_format(format_: str) -> Any:
    if format_ == "csv":
        return "id,v\n" + "\n".join(f"{i},{v}" for i, v in enumerate(TEXTS))
    if format_ == "json":
        return "\n".join(f'{{"id":{i},"v":{v}}}' for i, v in enumerate(TEXTS))
    exact = pa.array([Decimal(v).quantize(Decimal("1E-6")) for v in TEXTS], pa.decimal128(12, 6))
    return pa.table({"id": pa.array(range(len(TEXTS)), pa.int32()), "v": exact})


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_a_decimal_keeps_its_places_or_is_quarantined(new_landed: NewLanded, format_: str) -> None:
    lake = new_landed(DECLARED % (format_, SCHEMA))
    lake.land("things", **{f"a_{format_}": of_format(format_)})
    fitting = FITTING if format_ == "parquet" else {i: v for i, v in FITTING.items() if i != 4}
    assert lake.load().quarantined == len(TEXTS) - len(fitting)
    assert {r["id"]: str(r["v"]) for r in lake.rows("things")} == fitting
    reasons = {q["reason"] for q in lake.quarantine("things")}
    assert {
        "column v: 1.005 is not a valid DECIMAL(6, 2)",
        "column v: -0.001 is not a valid DECIMAL(6, 2)",
    } < reasons


def test_binary_fractions_are_rounded_to_decimals(new_landed: NewLanded) -> None:
    lake = new_landed(DECLARED % ("parquet", SCHEMA))
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "v": [0.1 + 0.2, 1.005]})
    lake.land("things", a_parquet=rows)
    assert lake.load().quarantined == 0
    assert {str(r["v"]) for r in lake.rows("things")} == {"0.30", "1.01"}
