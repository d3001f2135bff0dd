"""Cogroup against brute force: every aggregate, every window, any changes in any batches."""

import pytest
from tests.kinds.cogroup.cases import CASES, FLOATS
from tests.kinds.cogroup.streams import (
    SOURCES,
)
from tests.support.contract import held
from tests.support.lake import NewLake
from tests.support.rows import (
    NOON,
)

from sluice.errors import QualityStop

test_the_cogroup_equals_its_query_after_any_batches, test_by_either_engine = held(CASES)


@pytest.mark.usefixtures("real_spark")
def test_a_sum_that_overflows_ends_the_batch(new_lake: NewLake) -> None:
    lake = new_lake(SOURCES + FLOATS.replace("f32: sum(f)", "n: sum(n)"))
    lake.put("sales", {"id": 1, "g": "a", "f": 0.5})
    lake.put("clicks", {"_sluice_interval": NOON, "_sluice_id": "p-1", "who": "a", "n": 2**62})
    lake.advance()
    lake.put("clicks", {"_sluice_interval": NOON, "_sluice_id": "q-1", "who": "a", "n": 2**62})
    with pytest.raises(QualityStop, match=r"out of range|overflow"):
        lake.advance()
    assert lake.rows("found") == [{"g": "a", "f": 0.5, "mean": 0.5, "n": 2**62}]
