"""Batches are found by their notes; notes that say nothing of offsets are named."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from sluice.delta.intervals import Note
from sluice.errors import DeliveriesLost
from sluice.language.interval import Interval
from sluice.sources.kafka.offsets import INSTANT, Batches
from sluice.sources.kafka.records import Message

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def note(files: str, minute: int = 0) -> Note:
    at = NOON + timedelta(minutes=minute)
    return Note(Interval(at, at + INSTANT), files, 1, 1, 0, 1)


def test_a_message_keeps_the_moment_of_the_batch_that_has_read_it() -> None:
    reads = [{"0": [0, 5]}, {"0": [5, 9]}]
    noted = [note(json.dumps({"id": "t", "read": r}), n) for n, r in enumerate(reads)]
    other = note(json.dumps({"id": "other", "read": {"0": [0, 9]}}), 2)
    batches = Batches.of([*noted, other], "t", "shop.events")
    moments = batches.by_moment([Message(0, 6, 0, None, b""), Message(0, 2, 0, None, b"")])
    assert [*moments] == [NOON, NOON + timedelta(minutes=1)]


@pytest.mark.parametrize(
    "files",
    ["", "d41d8cd98f00", "[]", "null", '{"id": "t"}', '{"id": "t", "read": {"0": 7}}', '{"0": []}'],
)
def test_a_note_of_an_earlier_sluice_is_named_with_what_to_do(files: str) -> None:
    noted = [note('{"id":"t","read":{"0":[0,5]}}'), note(files, 1)]
    with pytest.raises(DeliveriesLost, match="2024-05-01T12:01:00") as raised:
        Batches.of(noted, "t", "shop.events")
    assert "shop.events__intervals does not say which offsets" in str(raised.value)
    assert "sluice rebuild shop.events --as-landed" in str(raised.value.hint)
