"""What a long computation says of itself."""

import logging
import time
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from sluice.spark import session
from sluice.spark.session import Progress, say_where, watch


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sluice")


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What Sluice said; libraries log their own when the rubbish is collected."""
    return [r.getMessage() for r in caplog.records if r.name.startswith("sluice")]


def stage(done: int) -> SimpleNamespace:
    return SimpleNamespace(num_tasks=8, num_completed_tasks=done, num_bytes_read=5_000_000)


def test_only_an_operation_that_lasts_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    times = iter((0.0, 29.0, 31.0, 60.0, 62.0, 63.0))
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: next(times)))
    hear = Progress()
    for operation in "aabb":
        hear([stage(1)], 2, operation, False)
    assert told(caplog) == []
    hear([stage(3), stage(2)], 2, "b", False)
    hear([stage(4), stage(2)], 2, "b", False)
    assert told(caplog) == ["so far 5 of 16 Spark tasks done, 2 running, 10 MB read"]


@pytest.mark.usefixtures("real_spark")
def test_a_spark_of_ones_own_is_asked_how_far_it_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(session, "EVERY", 0.1)
    ended = watch(spark.sparkContext)
    spark.range(3, numPartitions=3).foreach(lambda _: time.sleep(0.6))
    ended.set()
    assert any("of 3 Spark tasks done" in line for line in told(caplog))


@pytest.mark.usefixtures("real_spark")
def test_the_address_of_sparks_pages_is_reported_where_there_are_any(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    say_where(spark, is_remote=False)
    assert told(caplog) == []
    settings = {"spark.ui.enabled": "true", "spark.driver.host": "10.0.0.7"}
    server = SimpleNamespace(conf=SimpleNamespace(get=settings.get))
    say_where(server, is_remote=True)  # type: ignore[arg-type]
    assert told(caplog) == ["Spark's own pages: http://10.0.0.7:4040"]
