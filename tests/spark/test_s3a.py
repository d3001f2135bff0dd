"""A Spark for a lake on S3: what it is started with, and what no setting holds."""

from pathlib import Path

import pytest
from tests.support.stores import using

from sluice.declare.settings import SparkSettings
from sluice.declare.stores import S3
from sluice.spark import session
from sluice.spark.jars import S3A

SECRETS = {
    "AWS_ACCESS_KEY_ID": "the-key",
    "AWS_SECRET_ACCESS_KEY": "hidden",
    "AWS_SESSION_TOKEN": "t0",
}
MINE = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_REGION": "here"}


@pytest.fixture(autouse=True)
def jars(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Nothing is fetched; the drivers that were asked for."""
    asked: list[object] = []

    def classpath(drivers: object) -> list[Path]:
        asked.append(drivers)
        return [Path("/jars/one.jar"), Path("/jars/two.jar")]

    monkeypatch.setattr(session, "classpath", classpath)
    return asked


def conf(**settings: object) -> dict[str, str]:
    return session.local_conf(SparkSettings.model_validate(settings))


def test_a_server_of_ones_own_is_asked_by_its_address_and_path(jars: list[object]) -> None:
    with using(MINE):
        found = conf(drivers=["s3"])
    assert jars == [("s3",)]
    assert found.items() >= S3.conf.items()
    assert found["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9"
    assert found["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert found["spark.hadoop.fs.s3a.endpoint.region"] == "here"


def test_amazons_own_is_asked_by_the_buckets_name() -> None:
    with using({"AWS_REGION": "eu-central-1"}):
        found = conf(drivers=["s3"])
    assert "spark.hadoop.fs.s3a.endpoint" not in found
    assert "spark.hadoop.fs.s3a.path.style.access" not in found
    assert found["spark.hadoop.fs.s3a.endpoint.region"] == "eu-central-1"


def test_no_setting_holds_what_is_secret() -> None:
    with using({**MINE, **SECRETS}):
        values = conf(drivers=["s3"]).values()
    assert not [value for value in values for secret in SECRETS.values() if secret in value]


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
def test_other_lakes_know_nothing_of_it(master: str) -> None:
    with using({**MINE, **SECRETS}):
        found = conf(master=master)
    assert not [name for name in found if "s3" in name or name == "spark.jars"]


def test_a_cluster_gets_the_jars_from_the_driver() -> None:
    assert "spark.jars" not in conf(drivers=["s3"])
    found = conf(drivers=["s3"], master="spark://host:7077")
    assert found["spark.jars"] == "/jars/one.jar,/jars/two.jar"


def test_its_jars_are_a_few_megabytes_each_named_once() -> None:
    assert len({jar.file for jar in S3A}) == len(S3A) == 37
    assert sum(jar.size for jar in S3A) < 13_000_000
