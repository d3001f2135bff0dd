"""Batches that are killed anywhere: each commit of the table is delivered once."""

from tests.cli.trips import Project
from tests.sources.foreign.conftest import Following, Made
from tests.support.lake import counted

from sluice.delta.places.failpoint import VARIABLE

PLACES = (
    *("creating:events__deliveries", "created:events__deliveries", "read:events"),
    *("quarantined:events", "committing:events__deliveries", "committed:events__deliveries"),
    *("recorded:events__intervals", "committing:events", "committed:events"),
)
RULE = "expect: [{type: expect_column_values_to_not_be_null, column: v, on_failure: quarantine}]"


def test_a_batch_killed_anywhere_is_delivered_once(following: Made) -> None:
    lake = following(extra=f"key: [id]\n{RULE}", bounds=", max_rows: 3")
    lake.crm.create({"id": 1, "v": 1}, {"id": 2, "v": None}, {"id": 3, "v": 3})
    for nth, place in enumerate(PLACES):
        assert _ingest(lake, place) == -9, place
        lake.crm.append({"id": 10 + nth, "v": nth}, {"id": 100 + nth, "v": None})
        lake.crm.table.update(updates={"v": "v + 1"}, predicate="id = 1")
    before = lake.crm.digest()
    assert _ingest(lake, "") == 0
    good = {key: n for key, n in lake.crm.rows("id", "v").items() if key[1] is not None}
    assert lake.values() == good
    assert {q["raw"] for q in lake.quarantine()} == {
        f'{{"id":{n},"v":null}}' for n in (2, *range(100, 100 + len(PLACES)))
    }
    ids = counted(
        (r["_sluice_interval"], r["_sluice_id"]) for r in lake.stored("events__deliveries")
    )
    assert set(ids.values()) == {1}
    assert lake.crm.digest() == before


def _ingest(lake: Following, failpoint: str) -> int:
    variables = {VARIABLE: failpoint}
    done = Project(lake.folder, remote="").sluice("ingest", "events", **variables)
    assert done.code in (0, -9), done.err[-2000:]
    return done.code
