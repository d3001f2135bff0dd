"""Sail's server: on loopback alone, of one version, set up by nothing of the environment."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.support import sail

from sluice.errors import MissingDependency

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def session() -> Iterator["SparkSession"]:
    session = sail.open_session()
    yield session
    session.stop()
    sail.stop()


def test_another_version_than_the_tried_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sail, "version", lambda name: "0.8.0")
    with pytest.raises(MissingDependency, match=r"tried; installed is 0\.8\.0"):
        sail.check_version()


def test_the_installed_version_is_the_tried_one() -> None:
    sail.check_version()


def test_a_process_has_one_server_and_it_listens_on_loopback(session: "SparkSession") -> None:
    host, port = sail._address()
    assert host == "127.0.0.1"
    assert port > 0
    assert sail._address() == (host, port)


def test_a_session_has_sparks_settings(session: "SparkSession") -> None:
    assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert session.conf.get("spark.sql.ansi.enabled") == "true"
    (row,) = session.sql("SELECT current_timezone() AS zone, 1 / 2 AS half").collect()
    assert (row.zone, row.half) == ("UTC", 0.5)


def test_a_proxy_is_not_asked(session: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    other = sail.open_session()
    assert other.range(3).count() == 3


def test_variables_of_the_environment_do_not_set_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAIL_TELEMETRY__EXPORTER__OTLP__ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("SAIL_MODE", "kubernetes-cluster")
    with sail._environment():
        assert os.environ["SAIL_MODE"] == "local"
        assert os.environ["SAIL_TELEMETRY__EXPORTER__OTLP__ENDPOINT"] == ""
    assert os.environ["SAIL_MODE"] == "kubernetes-cluster"
    assert os.environ["SAIL_TELEMETRY__EXPORTER__OTLP__ENDPOINT"] == "http://127.0.0.1:9"
    assert "RUST_LOG" not in os.environ


NULLED = "SELECT named_struct('v', v) AS r FROM VALUES (-1) AS t(v)"
WITH_NULLS = "array(named_struct('a', 1), named_struct('a', CAST(NULL AS INT)))"
TWO = "VALUES (1, CAST(NULL AS INT)), (2, 0) AS t(x, k)"


@pytest.mark.parametrize(
    ("query", "of_spark"),
    [
        ("SELECT 2147483647 + v FROM VALUES (1) AS t(v)", "an error"),
        ("SELECT sum(v) FROM VALUES (9223372036854775807L), (1L) AS t(v)", "an error"),
        (f"SELECT (CASE WHEN r.v > 0 THEN r END).v FROM ({NULLED})", None),
        (f"SELECT array_sort({WITH_NULLS})[0].a", None),
        (f"SELECT min_by(x, named_struct('a', k)) FROM {TWO}", 1),
    ],
)
def test_an_answer_for_which_no_batch_runs_on_it(
    session: "SparkSession", query: str, of_spark: object
) -> None:
    """Decision 0024 names them; it is to be looked at again when one becomes Spark's."""
    assert session.sql(query).collect()[0][0] != of_spark
