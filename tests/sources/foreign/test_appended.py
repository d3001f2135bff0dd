"""Tables whose appended rows alone are read: a changed row ends the run, or is skipped."""

from collections import Counter

import pytest
from tests.sources.foreign.conftest import Following, Made

from sluice.errors import QualityStop

REFUSING, SKIPPING = ", changes: refuse", ", changes: skip"


def values(lake: Following) -> Counter[tuple[object, ...]]:
    """Rows of the source, each as often as it has arrived."""
    return Counter((row["id"], row["v"]) for row in lake.rows("events"))


@pytest.mark.parametrize("feed", [False, True])
def test_a_changed_row_ends_the_run_and_names_the_table_and_its_version(
    following: Made, *, feed: bool
) -> None:
    lake = following(bounds=REFUSING)
    lake.crm.create({"id": 1, "v": 1}, {"id": 1, "v": 1}, feed=feed)
    lake.take()
    lake.crm.append({"id": 1, "v": 1}, {"id": 2, "v": 2})
    lake.crm.table.optimize.compact()
    lake.take()
    assert values(lake) == {(1, 1): 3, (2, 2): 1}
    before = lake.head("events")
    lake.take()
    assert lake.head("events") == before
    lake.crm.table.update(updates={"v": "9"}, predicate="id = 2")
    with pytest.raises(QualityStop) as caught:
        lake.take()
    assert f"reads {lake.crm.path} as a stream, but its version 3 changes" in caught.value.message
    assert "`sluice rebuild shop.events --as-landed`" in caught.value.hint
    assert values(lake) == {(1, 1): 3, (2, 2): 1}


@pytest.mark.parametrize("feed", [False, True])
def test_commits_that_change_rows_are_skipped_and_appended_rows_stay(
    following: Made, *, feed: bool
) -> None:
    lake = following(bounds=SKIPPING)
    lake.crm.create({"id": 1, "v": 1}, feed=feed)
    lake.take()
    lake.crm.append({"id": 2, "v": 2})
    lake.crm.table.delete("id = 2")
    lake.crm.table.update(updates={"v": "9"}, predicate="id = 1")
    lake.crm.append({"id": 2, "v": 2})
    lake.crm.write([{"id": 5, "v": 5}], "overwrite")
    lake.take()
    assert values(lake) == {(1, 1): 1, (2, 2): 2}
    assert lake.crm.rows("id", "v") == {(5, 5): 1}


def test_appended_rows_have_no_key(following: Made) -> None:
    with pytest.raises(Exception, match="leave `key` out"):
        following(bounds=SKIPPING, extra="key: [id]")
