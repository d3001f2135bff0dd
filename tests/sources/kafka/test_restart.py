"""A broker that is killed and started again; each test has one of its own."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sources.kafka.conftest import CONNECTION, SOURCE, Topical
from tests.support.kafka import running

from sluice.errors import Retryable
from sluice.sources.kafka import broker as client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_broker_killed_in_a_batch_costs_a_retry_and_no_row(
    tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as broker:
        monkeypatch.setenv(CONNECTION, broker.connection)
        monkeypatch.setattr(client, "ANSWER_S", 5.0)
        bounds = ", max_rows: 2, max_wait: 3 seconds"
        text = SOURCE.format(
            topic="t", bounds=bounds, format_="json", schema="id INT", extra="    key: [id]\n"
        )
        lake = Topical(tmp_path, text, spark)
        lake.broker, lake.topic = broker, broker.topic("t")
        lake.send(*({"id": n} for n in range(3)))
        read = client.Brokers._fill

        def killed(*arguments: object) -> None:
            broker.stop()
            read(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(client.Brokers, "_fill", killed)
        with pytest.raises(Retryable, match=r"silent for 3 seconds|brokers"):
            lake.take()
        monkeypatch.setattr(client.Brokers, "_fill", read)
        with pytest.raises(Retryable, match="don't answer"):
            lake.take()
        broker.start()
        lake.take()
        assert [row["id"] for row in lake.values()] == [0, 1, 2]
