"""Commands on a topic: run, status and doctor, and what they say when history is lost."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from tests.sources.kafka.called import called
from tests.sources.kafka.conftest import CONNECTION, Topical
from tests.support.landed import RUN

from sluice.errors import ExitCode
from sluice.operate.explain import explain
from sluice.operate.run import deliver
from sluice.read.pending import Unread
from sluice.read.status import status
from sluice.report.pages import tables
from sluice.sources import origins

Made = Callable[..., Topical]


def test_run_status_and_doctor_follow_a_topic(topical: Made) -> None:
    lake = topical()
    lake.send({"id": 1}, {"id": 2})
    assert called(lake, "run", "shop")[0] == 0
    assert "lag: shop.events is up to date" in called(lake, "status")[1]
    lake.send({"id": 3})
    assert (
        "lag: shop.events is behind, partition 0 by 1 message since 20" in called(lake, "status")[1]
    )
    assert called(lake, "doctor")[0] == 0
    lake.send({"id": 4})
    lake.broker.cut(lake.topic, 3)
    code, said = called(lake, "ingest", "events")
    assert (code, "--from earliest" in said) == (ExitCode.HISTORY, True)
    assert "up to offset 2, but begins at 3" in called(lake, "doctor")[1]
    code, said = called(lake, "rebuild", "events", "--from", "earliest")
    assert (code, "from offset 2 to 3 are skipped" in said) == (0, True)
    assert called(lake, "ingest", "events")[0] == 0
    assert [row["id"] for row in lake.values()] == [1, 2, 4]


def test_lag_is_shown_in_messages_and_time_of_each_partition(topical: Made) -> None:
    lake = topical(partitions=3)
    lake.send({"id": 1}, {"id": 2}, at=1_714_557_600_000)
    lake.send({"id": 3}, partition=2, at=1_714_557_660_000)
    (one,) = status(lake.project, asks_brokers=True)
    first, second = (datetime(2024, 5, 1, 10, minute, tzinfo=UTC) for minute in (0, 1))
    assert one.unread == (Unread(0, 2, first), Unread(1, 0, None), Unread(2, 1, second))
    (step,) = explain(lake.project, lake.table("events"))
    assert (step.next, step.rows) == ("ingest", 3)
    assert step.reason.startswith("3 messages to read since 2024-05-01T10:00:00+00:00")
    lake.take()
    lake.send({"id": 4}, at=1_714_557_660_000)
    parts = json.loads(called(lake, "status", "--json")[1])["unread"]
    assert [part["messages"] for part in parts] == [1, 0, 0]
    assert parts[0]["since"].startswith("2024-05-01T10:01:00")
    assert tables(lake.project, [lake.table("events")])[0].status.state == "behind"


def test_silent_brokers_hide_the_lag(topical: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = topical()
    lake.send({"id": 1})
    lake.take()
    monkeypatch.setattr(origins, "ANSWER_S", 0.5)
    silent = json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:9"}})
    monkeypatch.setenv(CONNECTION, silent)
    said = called(lake, "status")[1]
    assert "lag: shop.events is not known: the brokers of the connection" in said
    shown = tables(lake.project, [lake.table("events")])[0]
    assert (shown.status.state, shown.status.rows) == ("up to date", 1)
    assert "don't answer" in shown.status.unheard


def test_a_preview_reads_messages_and_leaves_them_to_the_next_run(topical: Made) -> None:
    lake = topical(extra="key: [id]")
    lake.send({"id": 1, "v": 1})
    lake.take()
    lake.send({"id": 1, "v": 2}, {"id": 2, "v": 2})
    before = lake.versions("events", "events__deliveries"), lake.place()
    code, said = called(lake, "run", "shop", "--preview")
    assert code == 0, said
    assert (lake.versions("events", "events__deliveries"), lake.place()) == before
    assert called(lake, "run", "shop")[0] == 0
    assert lake.values() == [{"id": 1, "v": 2}, {"id": 2, "v": 2}]


def test_a_renamed_source_reads_on_and_a_dropped_one_begins_again(topical: Made) -> None:
    lake = topical(extra="key: [id]")
    lake.send({"id": 1, "v": 1})
    lake.take()
    lake.declare(lake.text("  events:", "  orders:"))
    code, said = called(lake, "rename", "events", "orders")
    assert code == 0, said
    lake.send({"id": 2, "v": 2})
    (deliveries, _) = deliver(lake.spark, lake.project, lake.table("orders"), RUN, ())
    assert (deliveries.rows_in, {r["id"] for r in lake.rows("orders")}) == (1, {1, 2})
    lake.declare(lake.text("  orders:", "  events:"))
    code, said = called(lake, "drop", "orders")
    assert code == 0, said
    (deliveries, _) = lake.take()
    assert (deliveries.rows_in, [row["id"] for row in lake.values()]) == (2, [1, 2])


def test_a_changed_schema_is_refused_with_the_way_to_read_the_topic_again(topical: Made) -> None:
    lake = topical()
    lake.send({"id": 1, "v": 1, "w": "x"})
    lake.take()
    lake.declare(lake.text("v INT", "v BIGINT, w STRING"))
    lake.send({"id": 2, "v": 2**40, "w": "y"})
    code, said = called(lake, "ingest", "events")
    assert (code, "sluice rebuild" in said) == (ExitCode.CONFIGURATION, True), said
    assert (lake.place().following, len(lake.stored("events"))) == ({0: 1}, 1)


def test_missing_connections_are_named(topical: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = topical()
    monkeypatch.delenv(CONNECTION)
    code, said = called(lake, "ingest", "events")
    assert code == ExitCode.CONFIGURATION
    assert "there is no connection 'shop_kafka'" in said
    assert CONNECTION in said


def test_rebuild_takes_what_the_topic_still_has_only_on_request(topical: Made) -> None:
    lake = topical()
    lake.send({"id": 1}, {"id": 2})
    lake.take()
    lake.broker.cut(lake.topic, 1)
    code, said = called(lake, "rebuild", "events")
    assert (code, "--as-landed" in said) == (ExitCode.HISTORY, True)
    assert len(lake.values()) == 2
