"""States of a user's own aggregators: what came is added, what went is removed if it can be."""

from typing import Any

import pyarrow as pa
import pytest
from tests.support.aggregators import Longest, Product

from sluice.kinds.cogroup import own

PRODUCT = pa.struct({"product": pa.float64(), "zeros": pa.int64()})


@pytest.mark.parametrize(
    ("aggregator", "types", "was", "came", "gone", "now"),
    [
        (Longest(), (pa.string(), pa.string()), None, ["a", "bb"], None, "bb"),
        (Longest(), (pa.string(), pa.string()), "bb", ["a"], None, "bb"),
        (Longest(), (pa.string(), pa.string()), "bb", None, None, "bb"),
        (Longest(), (pa.string(), pa.string()), "bb", None, ["bb"], None),
        (Longest(), (pa.string(), pa.string()), None, None, ["bb"], None),
        (Product(), (PRODUCT, pa.float64()), (6.0, 1), [5.0], [2.0, 0.0], (15.0, 0)),
    ],
)
def test_a_state_follows_its_groups_rows(
    aggregator: Any,
    types: tuple[pa.DataType, pa.DataType],
    was: Any,
    came: Any,
    gone: Any,
    now: Any,
) -> None:
    state, rows = types[0], pa.list_(types[1])
    given = (pa.array([was], state), pa.array([came], rows), pa.array([gone], rows))
    assert own._updating(aggregator, "f(x)")(*given) == pa.array([now], state)
