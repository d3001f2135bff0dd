"""Each invariant holds of what Sluice writes, and each way of breaking it is reported."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from pyspark.sql.types import StructType
from tests.delta.tables import ID_AND_V, Small, a_position, pins

from sluice.delta.intervals import Note
from sluice.delta.upkeep.table_invariants import (
    Digest,
    count_faults,
    digest,
    digest_of,
    feed_digest,
    feed_faults,
    position_faults,
    row_count,
    rows_by,
)
from sluice.delta.writing.commit import add_columns, commit_arrow
from sluice.language.interval import Interval

DAY = Interval(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
values = st.one_of(st.none(), st.integers(-2, 2), st.sampled_from(["a", "b"]), st.booleans())
rows = st.lists(st.fixed_dictionaries({"a": values, "b": values}), max_size=5)


@pytest.fixture
def table(tmp_path: Path) -> Small:
    small = Small.create(tmp_path, ID_AND_V, ["id"], commit_arrow)
    small.commit(("insert", {"id": 1, "v": "a"}), ("insert", {"id": 2, "v": "b"}), inputs=pins(s=1))
    small.commit(("update", {"id": 1, "v": "A"}), inputs=pins(s=2))
    small.position_only(inputs=pins(s=3))
    small.commit(("delete", {"id": 2, "v": "b"}), inputs=pins(s=3))
    return small


def foreign(uri: str, *, position: str = "") -> None:
    """One more row that no batch has made, or that says of itself what it likes."""
    rows = pa.table({"id": pa.array([9], pa.int32()), "v": ["z"]})
    said = CommitProperties(custom_metadata={"userMetadata": position}) if position else None
    write_deltalake(uri, rows, mode="append", commit_properties=said)


def told(found: Iterator[str]) -> str:
    return "\n".join(found)


def test_what_batches_write_is_sound(table: Small) -> None:
    assert told(position_faults(table.uri)) == ""
    assert told(feed_faults(table.uri)) == ""
    assert row_count(table.uri, 4) == 1
    assert feed_digest(table.uri, 0, 4) == digest(table.uri) == digest_of(table.rows())


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"inputs": pins(s=2)}, "the input s went back from version 3 to 2"),
        ({"inputs": {}}, "the input s is no longer recorded"),
        (
            {"inputs": {"s": replace(pins(s=4)["s"], table="other")}},
            "s was replaced by another table",
        ),
        ({"batch": 4}, "batch 4 came after batch 4"),
        ({"unchanged_since": 4}, "changed rows, though its position says otherwise"),
    ],
)
def test_a_position_that_can_not_follow_its_forerunner_is_reported(
    table: Small, changed: dict[str, Any], fault: str
) -> None:
    good = {"batch": 5, "inputs": pins(s=3), "after": 4}
    foreign(table.uri, position=a_position(**{**good, **changed}).to_json())
    assert fault in told(position_faults(table.uri))


def test_a_reference_that_goes_back_is_reported(table: Small) -> None:
    table.position_only(inputs=pins(s=3), references=pins(d=2))
    table.position_only(inputs=pins(s=3), references=pins(d=1))
    assert told(position_faults(table.uri)) == (
        "version 6: the reference d went back from version 2 to 1"
    )


def test_rows_of_others_below_a_batch_are_reported_unless_a_rebuild_has_seen_them(
    table: Small,
) -> None:
    before = table.head
    foreign(table.uri)
    position = a_position(before.next_batch, inputs=pins(s=3), after=4)
    foreign(table.uri, position=position.to_json())
    assert "version 6: was not computed from the rows of version 5" in told(
        position_faults(table.uri)
    )
    rebuilt = replace(position, batch=6, kind="rebuild", after=6, inputs=pins(s=1))
    foreign(table.uri, position=rebuilt.to_json())
    assert "version 7" not in told(position_faults(table.uri))


def test_a_feed_that_lacks_a_change_is_reported(table: Small) -> None:
    """As where a commit moves rows and says that it doesn't."""
    log = Path(table.uri) / "_delta_log" / f"{4:020d}.json"
    hidden = log.read_text().replace('"dataChange":true', '"dataChange":false')
    log.write_text("".join(line for line in hidden.splitlines(True) if '"cdc"' not in line))
    assert (
        "the change feed from version 0 adds up to 2 rows that differ from the 1 of version 4"
        in told(feed_faults(table.uri))
    )


def test_a_feed_of_the_right_number_of_wrong_rows_is_reported(table: Small) -> None:
    change, log = changes_of_version(table, 2)
    feed, size = parquet.read_table(change), change.stat().st_size
    at, lies = feed.schema.get_field_index("v"), pa.array(["?"] * feed.num_rows)
    parquet.write_table(feed.set_column(at, "v", lies), change)
    log.write_text(log.read_text().replace(f'"size":{size}', f'"size":{change.stat().st_size}'))
    assert "rows that differ from" in told(feed_faults(table.uri))


def test_a_feed_whose_file_is_broken_is_reported(table: Small) -> None:
    change, _ = changes_of_version(table, 2)
    change.write_bytes(b"PAR1" * 100)
    assert "the change feed from version 0 can't be read" in told(feed_faults(table.uri))


def changes_of_version(table: Small, version: int) -> tuple[Path, Path]:
    """The file of a version's change data, and its log."""
    log = Path(table.uri) / "_delta_log" / f"{version:020d}.json"
    actions = map(json.loads, log.read_text().splitlines())
    return Path(table.uri) / next(a["cdc"]["path"] for a in actions if "cdc" in a), log


def test_what_maintenance_took_away_is_no_fault(table: Small) -> None:
    for file in (Path(table.uri) / "_change_data").glob("*"):
        file.unlink()
    assert told(feed_faults(table.uri)) == ""
    DeltaTable(table.uri).create_checkpoint()
    for version in range(3):
        (Path(table.uri) / "_delta_log" / f"{version:020d}.json").unlink()
    assert told(feed_faults(table.uri)) == ""
    assert told(position_faults(table.uri)) == ""


def test_a_feed_goes_on_across_columns_that_came(table: Small) -> None:
    add_columns(table.head, StructType().add("w", "integer"))
    table.commit(("insert", {"id": 3, "v": "c", "w": 1}))
    assert told(feed_faults(table.uri)) == ""
    assert feed_digest(table.uri, 0, 6) == digest(table.uri)


def test_a_feed_begins_again_where_it_was_switched_off(table: Small) -> None:
    for is_on in ("false", "true"):
        DeltaTable(table.uri).alter.set_table_properties({"delta.enableChangeDataFeed": is_on})
    table.commit(("insert", {"id": 3, "v": "c"}))
    assert told(feed_faults(table.uri)) == ""


def test_counts_of_a_delivery_must_add_up_and_be_stored() -> None:
    noted = [Note(DAY, "", 5, 4, 1)]
    stored = {DAY.start: 3, DAY.start + timedelta(hours=1): 1, DAY.end: 7}
    assert told(count_faults(noted, stored)) == ""
    assert told(count_faults([Note(DAY, "", 6, 4, 1)])).endswith(
        "6 rows read, 4 accepted and 1 quarantined"
    )
    assert "4 rows were accepted, 3 are stored" in told(count_faults(noted, {DAY.start: 3}))
    assert told(count_faults(noted, {DAY.start: 3}, repeats=True)) == ""
    assert "5 are stored" in told(count_faults(noted, {DAY.start: 5}, repeats=True))


def test_rows_are_counted_by_a_column(table: Small) -> None:
    assert rows_by(table.uri, "v") == {"A": 1}


@given(left=rows, right=rows)
def test_digests_are_equal_exactly_where_rows_are(
    left: list[dict[str, Any]], right: list[dict[str, Any]]
) -> None:
    def as_rows(found: list[dict[str, Any]]) -> list[str]:
        return sorted(repr(sorted((c, v) for c, v in r.items() if v is not None)) for r in found)

    assert (digest_of(left) == digest_of(right)) == (as_rows(left) == as_rows(right))
    assert digest_of(left) + digest_of(right) == digest_of([*right, *left])
    assert digest_of(left) - digest_of(left) == Digest()


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (-0.0, 0.0),
        (math.nan, float("-nan")),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([("k", 1), ("l", 2)], [("l", 2), ("k", 1)]),
        (datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), DAY.start),
    ],
)
def test_equal_values_have_one_digest(one: Any, same: Any) -> None:
    assert digest_of([{"v": one}]) == digest_of([{"v": same}])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"),
        (1, True),
        (Decimal("1.0"), Decimal("1.1")),
        ([1, 2], [2, 1]),
        ([{"a": 1}], [{"a": 2}]),
        ([None], []),
        ({"a": None}, None),
    ],
)
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    assert digest_of([{"v": one}]) != digest_of([{"v": other}])
