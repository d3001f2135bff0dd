"""Row groups as small as the tests' files, a quarter of one each."""

from collections.abc import Iterator

import pytest
from tests.delta.worn import FILE

from sluice.delta.writing import own_commits


@pytest.fixture(scope="module")
def small_row_groups() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_commits, "GROUP_ROWS", FILE // 4)
        yield
