"""Old commits go from the log of a table in a store, as on a disk."""

from datetime import UTC, datetime, timedelta

import pytest
from deltalake.exceptions import DeltaError
from tests.delta.tables import ID_AND_V, Small, a_position
from tests.support.stores import Store

from sluice.delta.log.opened import open_version
from sluice.delta.upkeep.maintenance import clean_log
from sluice.delta.writing.commit import commit_arrow, create


def test_commits_before_the_checkpoint_of_what_is_needed_go(store: Store) -> None:
    table = Small(f"{store.uri(store.place())}/lake/shop/totals", ["id"], commit_arrow)
    create(table.uri, ID_AND_V, a_position(0, kind="create"))
    for number in range(21):
        table.commit(("insert", {"id": number, "v": "x"}))
    in_two_months = datetime.now(UTC) + timedelta(days=60)
    assert clean_log(table.uri, 20, in_two_months) == 20  # 19 commits and a checkpoint
    assert open_version(table.uri, 19).version() == 19
    with pytest.raises(DeltaError):
        open_version(table.uri, 18)
    assert table.commit(("delete", {"id": 3, "v": "x"})).deleted == 1
    assert open_version(table.uri).to_pyarrow_table().num_rows == 20
