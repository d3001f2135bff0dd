"""What a large batch brings to the driver: no rows beyond `small_changelog`, whatever the kind."""

import pytest
from tests.engine.committing.collected import DECLARED, MOST, collected, hold
from tests.support.lake import NewLake

from sluice.declare.registry import kinds

__all__ = ["collected"]

pytestmark = pytest.mark.usefixtures("real_spark")


def test_a_large_batch_of_any_kind_leaves_its_rows_in_spark(
    new_lake: NewLake, collected: list[int]
) -> None:
    """Each view alters more rows than that, at its build and when all prices change."""
    lake = new_lake(DECLARED, small_changelog=MOST)
    held = {table.kind for table in lake.project.graph.tables.values()}
    assert held >= {kind.name for kind in kinds("views")} - {"sql"}
    hold(lake, collected)
