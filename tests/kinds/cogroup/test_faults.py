"""A window that no reader can hold ends the batch in one line."""

from datetime import UTC, datetime

import pytest
from tests.kinds.cogroup.aggregates.faults import SALES, VIEW
from tests.support.lake import NewLake

from sluice.errors import QualityStop

pytestmark = pytest.mark.usefixtures("real_spark")


@pytest.mark.parametrize("window", ["tumbling, size: 1 day", "session, gap: 1 day"])
def test_a_window_that_ends_too_late_to_be_read_is_reported(new_lake: NewLake, window: str) -> None:
    windowed = VIEW.replace("key: [g]", f"key: [g], window: {{{{time: at, type: {window}}}}}")
    lake = new_lake(SALES + windowed.format("found", "count(*)"))
    lake.put("sales", {"id": 1, "g": "a", "at": datetime(9999, 12, 31, 12, tzinfo=UTC)})
    with pytest.raises(QualityStop, match=r"found__state: .* within the years 1 to 9999"):
        lake.advance()
