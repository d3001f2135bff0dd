"""Topics of JSON: what is new is delivered once, its offsets are in the commit."""

from collections.abc import Callable

from tests.sources.kafka.conftest import Topical
from tests.support.lake import counted, folded

Made = Callable[..., Topical]


def test_what_is_new_is_taken_once(topical: Made) -> None:
    lake = topical(partitions=2)
    lake.send({"id": 1, "v": 1}, {"id": 1, "v": 1})
    lake.send({"id": 2}, partition=1)
    (report,) = lake.take()
    assert (report.inserted, report.rows_in, report.engine) == (3, 3, "process")
    place = lake.place()
    assert (place.cluster, place.topic) == (lake.broker.cluster, lake.topic)
    assert (place.start, place.following) == ({0: 0, 1: 0}, {0: 2, 1: 1})
    before = lake.versions("events", "events__intervals")
    (report,) = lake.take()
    assert report.outcome == "unchanged"
    assert lake.versions("events", "events__intervals") == before
    lake.send({"id": 3, "v": 3})
    (report,) = lake.take()
    assert (report.inserted, report.rows_in) == (1, 1)
    assert counted(r["id"] for r in lake.values()) == counted([1, 1, 2, 3])
    assert folded(lake.feed("events")) == counted(lake.stored("events"))


def test_of_a_key_the_last_message_stands_and_a_tombstone_deletes(topical: Made) -> None:
    lake = topical(extra="key: [id]")
    lake.send({"id": 1, "v": 1}, {"id": 2, "v": 2}, {"id": 1, "v": 9}, {"id": 3, "v": 3})
    lake.take()
    assert lake.values() == [{"id": 1, "v": 9}, {"id": 2, "v": 2}, {"id": 3, "v": 3}]
    lake.send((2, None), ({"id": 3}, None), {"id": 1, "v": 10})
    lake.take()
    assert lake.values() == [{"id": 1, "v": 10}]


def test_values_keep_what_was_written(topical: Made) -> None:
    schema = "id BIGINT, d DECIMAL(38,2), at TIMESTAMP, s STRING, l ARRAY<INT>, n STRUCT<a: INT>"
    lake = topical(schema)
    lake.send(
        b'{"id": 1, "d": 123456789012345678901234567890123456.10, "at": "2024-05-01T10:00:00Z",'
        b' "s": {"x": 1.10, "y": [true, null]}, "l": [1, null], "n": {"a": 2}}'
    )
    lake.take()
    (row,) = lake.values()
    assert str(row["d"]) == "123456789012345678901234567890123456.10"
    assert row["at"].isoformat() == "2024-05-01T10:00:00+00:00"
    assert row["s"] == '{"x":1.10,"y":[true,null]}'
    assert (row["l"], row["n"]) == ([1, None], {"a": 2})


def test_batches_are_bounded_by_rows_and_by_bytes(topical: Made) -> None:
    lake = topical(partitions=3, bounds=", max_rows: 4")
    for partition in range(3):
        lake.send(*({"id": n, "v": partition} for n in range(3)), partition=partition)
    assert [r.inserted for r in lake.take()] == [4, 4, 1]
    assert lake.place().following == {0: 3, 1: 3, 2: 3}
    assert len(lake.values()) == 9


def test_a_batch_is_ended_by_the_size_of_its_messages(topical: Made) -> None:
    lake = topical("id INT, s STRING", bounds=", max_rows: 2, max_bytes: 1000")
    lake.send(*({"id": n, "s": "x" * 2000} for n in range(3)))
    assert [r.inserted for r in lake.take()] == [2, 1]


def test_bad_messages_are_kept_whole_and_replayed_once_they_fit(topical: Made) -> None:
    lake = topical(extra="key: [id]")
    lake.send(
        {"id": 1, "v": "x"},
        b"nonsense",
        {"v": 3},
        [1],
        {"id": 1, "v": 2},
        b"\xff",
        at=1700000000000,
    )
    (deliveries, _) = lake.take()
    assert (deliveries.rows_in, deliveries.quarantined) == (6, 5)
    assert [q["reason"] for q in lake.quarantine()] == [
        "column v: x is not a valid INT",
        "key column id is null",
        "the message is not JSON",
        "the message is not an object",
        "the message is not in UTF-8",
    ]
    kept = next(q for q in lake.quarantine() if q["reason"] == "the message is not JSON")
    assert kept["file"] == f"{lake.topic}/0"
    assert kept["raw"] == (
        f'{{"topic": "{lake.topic}", "partition": 0, "offset": 1, "timestamp": 1700000000000, '
        '"key": null, "value": "bm9uc2Vuc2U="}'
    )
    lake.replay()
    assert len(lake.quarantine()) == 5
    assert lake.values() == [{"id": 1, "v": 2}]


def test_large_messages_are_read_from_the_topic_once_allowed(topical: Made) -> None:
    lake = topical("id INT, s STRING", bounds=", max_message_bytes: 100")
    lake.send({"id": 1, "s": "x" * 100}, {"id": 2}, {"id": 3, "s": "y" * 200})
    (report,) = lake.take()
    assert (report.inserted, report.quarantined) == (1, 2)
    (large, larger) = lake.quarantine()
    assert "the message has 118 bytes, more than" in large["reason"]
    assert '"value": null, "bytes": 118' in large["raw"]
    lake.declare(lake.text("bytes: 100", "bytes: 150"))
    lake.replay()
    assert [(r["id"], len(r["s"] or "")) for r in lake.values()] == [(1, 100), (2, 0)]
    lake.declare(lake.text("bytes: 150", "bytes: 300"))
    lake.broker.cut(lake.topic, 3)
    lake.replay()
    assert [q["reason"] for q in lake.quarantine()] == [larger["reason"]]
    assert len(lake.values()) == 2


def test_json_fields_may_be_missing_unless_an_expectation_requires_them(topical: Made) -> None:
    rule = (
        "expect: [{type: expect_column_values_to_not_be_null, column: v, on_failure: quarantine}]"
    )
    lake = topical("id INT, v INT, w INT", extra=f"key: [id]\n{rule}")
    lake.send({"id": 1, "v": 1}, {"id": 2, "w": 2}, {"id": 3, "v": None}, {"v": 4}, (None, None))
    lake.take()
    assert lake.values() == [{"id": 1, "v": 1, "w": None}]
    assert [q["reason"] for q in lake.quarantine()] == [
        "expected that v is not null",
        "expected that v is not null",
        "key column id is null",
        "the message has neither a key nor a value",
    ]


def test_half_of_a_surrogate_pair_goes_to_quarantine(topical: Made) -> None:
    lake = topical("id INT, s STRING")
    lake.send(b'{"id": 1, "s": "\\ud83d"}', b'{"id": 2, "s": "\\ud83d\\ude00"}')
    lake.take()
    assert lake.values() == [{"id": 2, "s": "\U0001f600"}]
    assert [q["reason"] for q in lake.quarantine()] == ["the message has half of a surrogate pair"]


def test_expectations_judge_no_deletes(topical: Made) -> None:
    rule = (
        "expect: [{type: expect_column_values_to_not_be_null, column: v, on_failure: quarantine}]"
    )
    lake = topical(extra=f"key: [id]\n{rule}")
    lake.send({"id": 1, "v": 1}, {"id": 2})
    lake.take()
    lake.send((1, None))
    lake.take()
    assert lake.values() == []
    assert [q["reason"] for q in lake.quarantine()] == ["expected that v is not null"]


def test_a_replay_adds_what_is_good_now_and_keeps_the_order_of_offsets(topical: Made) -> None:
    between = "expect_column_values_to_be_between, column: v, max_value: 5"
    rule = f"expect: [{{type: {between}, on_failure: quarantine}}]"
    lake = topical(extra=f"key: [id]\n{rule}")
    lake.send({"id": 1, "v": 8}, {"id": 1, "v": 2}, {"id": 2, "v": 9}, {"id": 3, "v": 99})
    lake.take()
    lake.declare(lake.text("max_value: 5", "max_value: 10"))
    lake.replay()
    assert lake.values() == [{"id": 1, "v": 2}, {"id": 2, "v": 9}]
    assert [q["reason"] for q in lake.quarantine()] == ["expected that v is at most 10"]
    before = lake.versions("events", "events__deliveries")
    lake.replay()
    assert lake.versions("events") == {"events": before["events"]}
    assert lake.place().following == {0: 4}
