"""Commands on a topic: run, status and doctor, and what they say when history is lost."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner
from tests.sources.kafka.conftest import CONNECTION, Topical

from sluice.cli.main import main
from sluice.errors import ExitCode

Made = Callable[..., Topical]


def called(lake: Topical, *arguments: str) -> tuple[int, str]:
    config = ("--config", str(lake.folder / "config"))
    done = CliRunner().invoke(main, [*arguments, *config])
    return done.exit_code, done.output


def test_run_status_and_doctor_follow_a_topic(topical: Made) -> None:
    lake = topical()
    lake.send({"id": 1}, {"id": 2})
    assert called(lake, "run", "shop")[0] == 0
    assert "lag: shop.events is up to date" in called(lake, "status")[1]
    lake.send({"id": 3})
    assert "behind, partition 0 by 1 messages" in called(lake, "status")[1]
    assert called(lake, "doctor")[0] == 0
    lake.send({"id": 4})
    lake.broker.cut(lake.topic, 3)
    code, said = called(lake, "ingest", "events")
    assert (code, "--from earliest" in said) == (ExitCode.HISTORY, True)
    assert "up to offset 2, but begins at 3" in called(lake, "doctor")[1]
    code, said = called(lake, "rebuild", "events", "--from", "earliest")
    assert (code, "from offset 2 to 3 are passed over" in said) == (0, True)
    assert called(lake, "ingest", "events")[0] == 0
    assert [row["id"] for row in lake.values()] == [1, 2, 4]


def test_a_connection_that_is_missing_is_named(
    topical: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
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
