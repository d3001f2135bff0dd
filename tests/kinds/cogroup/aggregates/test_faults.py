"""What an aggregate can't take ends the batch in one line; nothing is committed."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.cogroup.aggregates.faults import SALES, VIEW
from tests.support.lake import Lake

from sluice.errors import ConfigError, QualityStop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("real_spark")

OWN = "tests.support.aggregators"
OVERFLOWS = {
    "float": ("sum(f)", "cannot be represented as Decimal(38, 18)"),
    "double": ("avg(d)", "cannot be represented as Decimal(38, 18)"),
    "total": ("sum(f / 1e19)", "Overflow in sum of decimals."),
    "whole": ("sum(l)", "overflow"),
    "decimal": ("sum(m)", "Overflow in sum of decimals."),
}
OWN_FAULTS = {
    "raises": ("Texts(w)", "failed: ValueError: 'bad' can't be counted"),
    "mistyped": ("Mistyped(g)", "failed: ArrowInvalid: Could not convert {'a': 12} with type dict"),
    "untypable": ("Untypable(w)", "has a `state` that is none: unknown type 'TEXTS'"),
    "costly": ("Costly(w)", "can't be made: TypeError: Costly.__init__() missing 1 required"),
    "absent": ("Absent(w)", "module 'tests.support.aggregators' has no attribute 'Absent'"),
}


def lake_of(folder: Path, spark: "SparkSession", views: dict[str, str]) -> Lake:
    declared = "".join(VIEW.format(name, text) for name, text in views.items())
    lake = Lake(folder, SALES + declared, spark)
    large = {"f": 3e38, "d": 1e300, "l": 2**62, "m": 10**38 - 1, "w": "bad"}
    lake.put("sales", *({"id": i, "g": "a", **large} for i in range(12)))
    return lake


def test_a_total_that_overflows_is_never_a_number(tmp_path: Path, spark: "SparkSession") -> None:
    lake = lake_of(tmp_path, spark, {name: text for name, (text, _) in OVERFLOWS.items()})
    for name, (text, words) in OVERFLOWS.items():
        with pytest.raises(QualityStop) as stopped:
            lake.advance(name)
        message = stopped.value.message
        assert message.startswith(f"shop.{name}__state: one of {text}: "), message
        assert words in message
        assert "ansi" not in message
        assert "\n" not in message
        assert "approx_sum" in stopped.value.hint


def test_a_rounded_total_that_overflows_is_reported(tmp_path: Path, spark: "SparkSession") -> None:
    lake = lake_of(tmp_path, spark, {"found": "approx_sum(d * 1e8)"})
    with pytest.raises(QualityStop, match="the total is greater than a DOUBLE can be"):
        lake.advance()


def test_what_a_users_code_raises_is_reported_in_one_line(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    views = {name: f"{OWN}:{text}" for name, (text, _) in OWN_FAULTS.items()}
    lake = lake_of(tmp_path, spark, views)
    for name, (_, words) in OWN_FAULTS.items():
        with pytest.raises(ConfigError) as refused:
            lake.advance(name)
        assert words in refused.value.message
        assert "\n" not in refused.value.message
        assert "tests.support.aggregators" in refused.value.message


def test_an_aggregators_result_is_of_the_type_that_it_says(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(tmp_path, spark, {"found": f"{OWN}:Texts(g)"})
    lake.advance()
    assert lake.rows("found") == [{"g": "a", "x": [("a", 12)]}]
