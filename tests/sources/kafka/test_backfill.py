"""Backfills by the time of messages: they replace what those messages gave, and nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.sources.kafka.called import called
from tests.sources.kafka.conftest import Topical
from tests.support.landed import RUN

from sluice.airflow.blueprint import Task, TaskKind
from sluice.airflow.jobs import PipelineRun, job
from sluice.delta.intervals import deliveries
from sluice.delta.places.lake_layout import layout
from sluice.engine import BatchReport
from sluice.errors import ExitCode, HistoryLost
from sluice.language.interval import Interval
from sluice.language.names import INTERVALS
from sluice.operate.run import deliver
from sluice.operate.verify import faults

Made = Callable[..., Topical]
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
ATMOST = "expect_column_values_to_be_between, column: v, max_value"
RULE = f"expect: [{{type: {ATMOST}: 5, on_failure: quarantine}}]"


def kept(topical: Made, **how: Any) -> Topical:
    """A source of a topic that keeps messages of any age."""
    return topical(config={"retention_ms": "-1"}, **how)


def ms(minute: int) -> int:
    return round(minutes(minute).timestamp() * 1000)


def minutes(count: int) -> datetime:
    return NOON + timedelta(minutes=count)


def backfill(lake: Topical, start: int, end: int) -> list[BatchReport]:
    """Minutes after noon."""
    span = Interval(minutes(start), minutes(end))
    return list(deliver(lake.spark, lake.project, lake.table("events"), RUN, [span]))


def numbers(lake: Topical) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in lake.values())


def rule(lake: Topical, old: int, new: int) -> None:
    lake.declare(lake.text(f"max_value: {old}", f"max_value: {new}"))


@pytest.mark.parametrize("key", ["", "key: [id]\n"])
def test_a_backfill_replaces_what_the_messages_of_its_time_gave(topical: Made, key: str) -> None:
    lake = kept(topical, extra=key + RULE)
    for minute, v in ((0, 1), (1, 4), (2, 9), (3, 4), (4, 9)):
        lake.send({"id": minute, "v": v}, at=ms(minute))
        if minute % 2:
            lake.take()
    lake.take()
    assert numbers(lake) == [(0, 1), (1, 4), (3, 4)]
    rule(lake, 5, 3)
    backfill(lake, 1, 2)
    assert numbers(lake) == [(0, 1), (3, 4)]
    assert len(lake.quarantine()) == 3
    rule(lake, 3, 10)
    backfill(lake, 0, 2)
    assert numbers(lake) == [(0, 1), (1, 4), (3, 4)]
    backfill(lake, 4, 5)
    assert numbers(lake) == [(0, 1), (1, 4), (3, 4), (4, 9)]
    assert len(lake.quarantine()) == 1
    assert sum(r.rows_out for r in backfill(lake, 1, 2)) == 0
    assert lake.place().following == {0: 5}
    assert_sound(lake)


def test_messages_belong_to_the_time_that_they_bear_whatever_their_order(topical: Made) -> None:
    lake = kept(topical, extra=RULE, partitions=2)
    late, early = {"id": 1, "v": 9}, {"id": 2, "v": 9}
    lake.send({"id": 0, "v": 9}, at=ms(10_000))  # a clock that is a week ahead
    lake.send(early, at=ms(3))
    lake.send(late, at=ms(1))
    lake.send({"id": 3, "v": 9}, partition=1, at=ms(2))
    lake.send({"id": 4, "v": 9}, partition=1, at=ms(1))
    lake.take()
    rule(lake, 5, 10)
    assert sum(r.inserted for r in backfill(lake, 1, 2)) == 5  # one batch, judged again whole
    assert len(lake.values()) == 5
    rule(lake, 10, 5)
    backfill(lake, 1, 2)
    assert numbers(lake) == [(0, 9), (2, 9), (3, 9)]


def test_a_row_keeps_its_place_among_those_of_its_key(topical: Made) -> None:
    lake = kept(topical, extra="key: [id]")
    lake.send({"id": 1, "v": 1}, at=ms(0))
    lake.take()
    lake.send({"id": 1, "v": 2}, at=ms(1))
    lake.take()
    backfill(lake, 0, 1)
    assert numbers(lake) == [(1, 2)]


def test_messages_that_were_passed_over_are_brought_in_before_what_followed(topical: Made) -> None:
    lake = kept(topical, extra="key: [id]", bounds=", start: latest")
    lake.send({"id": 1, "v": 1}, {"id": 2, "v": 1}, at=ms(0))
    lake.take()
    lake.send({"id": 1, "v": 2}, at=ms(1))
    lake.take()
    lake.send({"id": 1, "v": 3}, {"id": 3, "v": 3}, at=ms(2))
    assert called(lake, "rebuild", "events", "--from", "latest")[0] == 0
    backfill(lake, 0, 3)
    assert numbers(lake) == [(1, 3), (2, 1), (3, 3)]
    lake.send({"id": 3, "v": 4}, at=ms(3))
    lake.take()
    for _ in range(2):
        backfill(lake, 0, 3)
    assert numbers(lake) == [(1, 3), (2, 1), (3, 4)]
    assert len(lake.stored("events__deliveries")) == 6


def test_messages_that_the_topic_lost_keep_their_rows_and_are_named(topical: Made) -> None:
    lake = kept(topical, extra=RULE)
    lake.send({"id": 0, "v": 1}, at=ms(0))
    lake.send({"id": 1, "v": 2}, at=ms(1))
    lake.take()
    lake.broker.cut(lake.topic, 1)
    rule(lake, 5, 0)
    (report,) = backfill(lake, 0, 2)
    assert numbers(lake) == [(0, 1)]
    assert "partition 0 begins at offset 1 now" in report.warnings[0]
    with pytest.raises(
        HistoryLost, match=r"no delivered message of .* any more; .* begins at offset 1"
    ):
        backfill(lake, 0, 1)
    assert [r.outcome for r in backfill(lake, 5, 6)] == ["unchanged"]


def test_a_source_that_has_read_nothing_is_filled(topical: Made) -> None:
    lake = kept(topical)
    lake.send({"id": 0, "v": 1}, at=ms(0))
    backfill(lake, 5, 6)
    assert numbers(lake) == [(0, 1)]


def test_the_command_and_the_task_take_the_bounds_of_a_backfill(topical: Made) -> None:
    lake = kept(topical, extra=RULE)
    lake.send({"id": 0, "v": 9}, at=ms(0))
    lake.take()
    lake.send({"id": 1, "v": 1}, at=ms(0))
    rule(lake, 5, 10)
    bounds = ("--start", "2024-05-01", "--end", "2024-05-02")
    assert called(lake, "ingest", "events", "--start", "2024-05-01")[0] == ExitCode.CONFIGURATION
    assert called(lake, "ingest", "events", *bounds)[0] == 0
    assert numbers(lake) == [(0, 9), (1, 1)]
    ingest = Task("ingest.events", TaskKind.INGEST, "shop")
    run = PipelineRun("r", Interval.parse("2024-05-01", "2024-05-02"))
    assert "--backfill" not in job(ingest, (), run, lake.folder, lake.folder).arguments
    run = PipelineRun("r", run.interval, is_backfill=True)
    assert "--backfill" in job(ingest, (), run, lake.folder, lake.folder).arguments


@pytest.mark.parametrize("again", ["take", "backfill"])
def test_a_batch_that_was_not_noted_is_noted_by_the_next_run(
    topical: Made, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    lake = kept(topical, extra=RULE)
    lake.send({"id": 0, "v": 1}, {"id": 1, "v": 9}, at=ms(0))
    lake.take()
    lake.send({"id": 2, "v": 2}, {"id": 3, "v": 9}, at=ms(0))
    with killed_before_the_note(monkeypatch):
        lake.take()
    lake.send({"id": 4, "v": 3}, at=ms(1))
    lake.take() if again == "take" else backfill(lake, 0, 1)
    noted = deliveries(layout(lake.project).uri("shop.events", INTERVALS))
    assert [(n.rows_read, n.rows_quarantined) for n in noted] == [(2, 1), (2, 1), (1, 0)]
    assert numbers(lake) == [(0, 1), (2, 2), (4, 3)]
    rule(lake, 5, 10)
    backfill(lake, 0, 1)
    assert numbers(lake) == [(0, 1), (1, 9), (2, 2), (3, 9), (4, 3)]
    assert_sound(lake)


def test_a_backfill_that_was_killed_before_it_was_noted_is_repeated_without_a_second_row(
    topical: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = kept(topical, extra=RULE)
    for minute in range(3):
        lake.send({"id": minute, "v": 1}, {"id": 10 + minute, "v": 9}, at=ms(minute))
        lake.take()
    rule(lake, 5, 10)
    with killed_before_the_note(monkeypatch):
        backfill(lake, 1, 2)
    assert numbers(lake) == [(0, 1), (1, 1), (2, 1), (11, 9)]
    backfill(lake, 1, 2)
    assert numbers(lake) == [(0, 1), (1, 1), (2, 1), (11, 9)]
    assert_sound(lake)


@contextmanager
def killed_before_the_note(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as killed:
        killed.setattr("sluice.sources.replacement.intervals.record", interrupt)
        with pytest.raises(KeyboardInterrupt):
            yield


def test_backfills_take_what_has_arrived_first(topical: Made) -> None:
    lake = kept(topical, extra="key: [id]\n" + RULE, bounds=", max_rows: 2")
    lake.send(*({"id": n, "v": 1} for n in range(3)), at=ms(0))
    lake.take()
    lake.send({"id": 0, "v": 2}, at=ms(0))
    lake.send({"id": 1, "v": 3}, at=ms(1))
    backfill(lake, 0, 1)
    assert numbers(lake) == [(0, 2), (1, 3), (2, 1)]
    assert_sound(lake)


def assert_sound(lake: Topical) -> None:
    assert not any(faults(lake.project, lake.table("events")).values())


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt
