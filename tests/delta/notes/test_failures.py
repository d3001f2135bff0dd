"""The last failure of each table, in small files of the lake."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sluice.delta.failures import Failure, clear, keep, stored_failures
from sluice.delta.places.lake_layout import LakeLayout

AT = datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
STOPPED = Failure("shop.sales", AT, "a column is a text", "mend it", 4, "run-1")


@pytest.fixture(params=["", "file://"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> LakeLayout:
    """By path, and by a URI, as an object store has one."""
    return LakeLayout(f"{request.param}{tmp_path}/lake")


def test_a_failure_is_read_as_it_was_kept(lake: LakeLayout) -> None:
    assert stored_failures(lake) == {}
    keep(lake, STOPPED)
    assert stored_failures(lake) == {"shop.sales": STOPPED}


def test_the_last_one_of_a_table_stands(lake: LakeLayout) -> None:
    later = Failure("shop.sales", AT, "another", exit_code=3)
    other = Failure("shop.best", AT, "no history", exit_code=5)
    for failure in (STOPPED, other, later):
        keep(lake, failure)
    assert stored_failures(lake) == {"shop.sales": later, "shop.best": other}


def test_one_is_cleared_alone_and_clearing_none_writes_nothing(
    lake: LakeLayout, tmp_path: Path
) -> None:
    clear(lake, "shop.sales")
    assert not (tmp_path / "lake").exists()
    other = Failure("shop.best", AT, "no history", exit_code=5)
    for failure in (STOPPED, other):
        keep(lake, failure)
    clear(lake, "shop.sales")
    assert stored_failures(lake) == {"shop.best": other}


def test_a_file_that_is_no_failure_is_passed_by(lake: LakeLayout, tmp_path: Path) -> None:
    keep(lake, STOPPED)
    folder = tmp_path / "lake" / "__quality" / "failures"
    (folder / "shop.best.json").write_text("{")
    assert stored_failures(lake) == {"shop.sales": STOPPED}
