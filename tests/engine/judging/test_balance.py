"""Rows read = rows accepted + rows in quarantine, asserted in every batch of every delivery."""

from typing import Any

import pytest
from deltalake import DeltaTable
from tests.support.landed import RUN, Landed, NewLanded, folder_of, lines

from sluice.engine import judging
from sluice.errors import QualityStop
from sluice.operate.run import deliver

GOOD, BAD = {"id": 1, "v": 1, "op": "c"}, {"id": 2, "v": -1, "op": "c"}
EXPECT = (
    "[{type: expect_column_values_to_be_between, column: v, min_value: 0, on_failure: quarantine}]"
)
COMMON = f"format: json, schema: 'id INT, v INT, op STRING', expect: {EXPECT}"
CHANGE = "change: {column: op, insert: [c], delete: [d]}"
BY_DAY = "path: 'landing/{interval_start:%Y-%m-%d}/'"
STREAM = "delivery: stream"
SOURCES = {
    "events": BY_DAY,
    "keyed": f"{BY_DAY}, key: [id]",
    "changes": f"{BY_DAY}, {CHANGE}",
    "keyed changes": f"{BY_DAY}, key: [id], {CHANGE}",
    "stream of files": f"path: landing/2024-01-01/, {STREAM}",
}
DIMENSIONS = {
    "snapshot": "key: [id]",
    "history": "key: [id], history: true",
    "changes": f"key: [id], delivery: changes, {CHANGE}",
}


def counted(lake: Landed, name: str, deliver: Any) -> tuple[int, int, int]:
    """Rows read, accepted and in quarantine, as a delivery of a good and a bad row notes them."""
    lake.land(folder_of(0), a_json=[GOOD, BAD])
    deliver()
    (noted,) = lake.noted(name).values()
    assert len(lake.quarantine(name)) == noted[2]
    return noted


@pytest.mark.parametrize("kind", SOURCES)
def test_every_row_of_a_source_is_accepted_or_quarantined(new_landed: NewLanded, kind: str) -> None:
    lake = new_landed(f"sources:\n  events: {{{SOURCES[kind]}, {COMMON}}}\n")

    def deliver_it() -> None:
        if "stream" in kind:
            list(deliver(lake.spark, lake.project, lake.table("events"), RUN, ()))
        else:
            lake.deliver()

    assert counted(lake, "events", deliver_it) == (2, 1, 1)


@pytest.mark.parametrize("kind", DIMENSIONS)
def test_every_row_of_a_dimension_is_accepted_or_quarantined(
    new_landed: NewLanded, kind: str
) -> None:
    declared = f"things: {{path: landing/2024-01-01/, {DIMENSIONS[kind]}, {COMMON}}}"
    lake = new_landed(f"dimensions:\n  {declared}\n")
    assert counted(lake, "things", lake.load) == (2, 1, 1)


@pytest.mark.usefixtures("real_spark")
def test_many_bad_rows_are_quarantined_by_spark_and_counted_where_they_lie(
    new_landed: NewLanded,
) -> None:
    lake = new_landed(f"sources:\n  events: {{{BY_DAY}, {COMMON}}}\n")
    lake.limit(collected_bytes=2)
    for nth, bad in ((0, 3), (1, 4), (0, 5)):
        lake.land(folder_of(nth), a_json=[GOOD, *[BAD] * bad])
        lake.deliver(nth)
    starts = [row["_sluice_interval"].day for row in lake.quarantine()]
    assert (starts.count(1), starts.count(2)) == (5, 4)
    properties = DeltaTable(lake.uri("events__quarantine")).metadata().configuration
    assert properties["delta.enableExpiredLogCleanup"] == "false"
    lake.land(folder_of(0), a_json=[GOOD])
    lake.deliver(0)
    assert len(lake.quarantine()) == 4


@pytest.mark.usefixtures("real_spark")
def test_few_rows_that_are_large_as_text_are_quarantined_by_spark(new_landed: NewLanded) -> None:
    lake = new_landed(f"sources:\n  events: {{{BY_DAY}, {COMMON}}}\n")
    lake.limit(collected_bytes=5_000)
    for nth, (width, by) in enumerate([(4_000, "delta-rs"), (6_000, "Apache-Spark")]):
        lake.land(folder_of(nth), a_json_gz=lines([GOOD, {**BAD, "op": "x" * width}]))
        lake.deliver(nth)
        (last,) = DeltaTable(lake.uri("events__quarantine")).history(1)
        assert by in last.get("engineInfo", last.get("clientVersion", ""))
    assert len(lake.quarantine()) == 2


def test_a_row_that_is_in_neither_ends_the_batch(
    new_landed: NewLanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = new_landed(f"sources:\n  events: {{{BY_DAY}, {COMMON}}}\n")
    lake.land(folder_of(0), a_json=[GOOD, BAD, BAD])
    rows = judging.quarantine_rows
    monkeypatch.setattr(judging, "quarantine_rows", lambda *a, **k: rows(*a, **k).limit(1))
    with pytest.raises(AssertionError, match="3 rows read are not 1 accepted and 1 quarantined"):
        lake.deliver()
    assert lake.noted() == {}


def test_a_column_of_which_no_value_fits_stops_instead_of_emptying_the_interval(
    new_landed: NewLanded,
) -> None:
    lake = new_landed(f"sources:\n  events: {{{BY_DAY}, {COMMON}}}\n")
    lake.land(folder_of(0), a_json=[GOOD])
    lake.deliver()
    lake.land(folder_of(0), a_json=[{**GOOD, "v": "one"}] * 19 + [{"id": 3}])
    lake.deliver()
    assert lake.noted() != {}
    lake.land(folder_of(0), a_json=[{**GOOD, "v": "one"}] * 20 + [{"id": 3}])
    told = r"column v: not one of 20 values .*a\.json: column v: one is not a valid INT"
    with pytest.raises(QualityStop, match=told):
        lake.deliver()
    assert [row["id"] for row in lake.rows("events")] == [3]
