"""A view takes over its state's changelog only for exactly the step that it must take."""

import pyarrow as pa
import pytest

from sluice.engine.batch_plan import Carried


@pytest.mark.parametrize(
    ("ranges", "is_same"),
    [
        ({"s": (3, 5)}, True),
        ({"s": (4, 5)}, True),
        ({"s": (2, 5)}, False),
        ({"s": (3, 6)}, False),
        ({"s": (3, 5), "other": (0, 1)}, False),
        ({"other": (3, 5)}, False),
    ],
)
def test_a_changelog_is_of_these_versions(
    ranges: dict[str, tuple[int, int]], is_same: bool
) -> None:
    assert Carried(pa.table({}), "s", since=3, version=5).is_of(ranges) == is_same
