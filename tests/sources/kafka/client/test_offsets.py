"""Places in a topic, checked against what its brokers describe."""

import json
from datetime import UTC, datetime

import pytest

from sluice.errors import HistoryLost, InputBehind, InputReplaced
from sluice.sources.kafka.offsets import OffsetRange, TopicDescription, fingerprint
from sluice.sources.kafka.records import moment_of

READ = TopicDescription("cluster", "t", "id", {0: 0, 1: 0, 2: 0}, {0: 5, 1: 5, 2: 5})
FEWER = {"first": {0: 0}, "following": {0: 9}}


@pytest.mark.parametrize(
    ("there", "fault", "says"),
    [
        (
            TopicDescription("cluster", "t", "other", **FEWER),
            InputReplaced,
            "deleted and created again",
        ),
        (
            TopicDescription("other", "t", "other", **FEWER),
            InputReplaced,
            "brokers are now of the cluster other",
        ),
        (
            TopicDescription("cluster", "t", "id", **FEWER),
            InputBehind,
            "partition 1 of t was read up to",
        ),
    ],
)
def test_a_topic_with_fewer_partitions_than_were_read_is_named(
    there: TopicDescription, fault: type[HistoryLost], says: str
) -> None:
    with pytest.raises(fault, match=says):
        OffsetRange.beginning(READ, latest=True).check(there, "shop.events")


@pytest.mark.parametrize(
    ("to", "read"), [((7, 5), {"0": [5, 7]}), ((5, 5), {"0": [5, 5], "1": [5, 5]})]
)
def test_a_batch_is_noted_by_partitions_with_messages_or_by_all_ends(
    to: tuple[int, int], read: dict[str, list[int]]
) -> None:
    place = {"id": "id", "from": {"0": 5, "1": 5}, "to": dict(zip("01", to, strict=True))}
    assert json.loads(fingerprint(place)) == {"id": "id", "read": read}


def test_a_producers_clock_may_be_beyond_the_calendar() -> None:
    assert moment_of(1_714_557_600_001) == datetime(2024, 5, 1, 10, 0, 0, 1000, UTC)
    assert moment_of(1_714_557_600_000_000).year == moment_of(2**63 - 1).year == 9999
