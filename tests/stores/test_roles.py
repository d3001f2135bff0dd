"""Keys of a role, which a token service gives out for a while: for tables, files and Spark."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.crash.shop import FIRST, day
from tests.stores.stored_shop import StoredShop
from tests.support import proxy, roles
from tests.support.proxy import Proxy
from tests.support.roles import ARN, Roles
from tests.support.stores import using

from sluice.declare import stores as declared
from sluice.declare.filesystems import locate
from sluice.declare.stores import keys_of_role
from sluice.errors import Retryable, SluiceError, StoreRefused

pytestmark = pytest.mark.usefixtures("real_spark")


@pytest.fixture(scope="module")
def known() -> Iterator[Roles]:
    with roles.running() as found:
        yield found


@pytest.fixture(scope="module")
def service(known: Roles) -> Iterator[Proxy]:
    """What counts the requests for keys."""
    with proxy.running(known.store.endpoint) as found:
        yield found


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declared, "_held", {})


def test_tables_and_files_are_reached_by_a_web_identity(known: Roles, tmp_path: Path) -> None:
    shop = StoredShop.begin(tmp_path / "shop", known.store)
    shop.land(1, *FIRST)
    with using(known.environ(tmp_path)):
        shop.run(day(1))
        shop.check()


def test_keys_are_asked_for_once_until_half_of_their_time_has_passed(
    known: Roles, service: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = known.environ(tmp_path, AWS_ENDPOINT_URL_STS=service.endpoint)
    service.clear()
    first = keys_of_role(environ)
    assert first
    assert (keys_of_role(environ), len(service.requests)) == (first, 1)
    now = time.time()
    monkeypatch.setattr(declared.time, "time", lambda: now + 1801)  # of an hour
    assert keys_of_role(environ) != first
    assert len(service.requests) == 2


def test_secrets_are_in_no_text_of_the_keys(known: Roles, tmp_path: Path) -> None:
    keys = keys_of_role(known.environ(tmp_path))
    assert keys
    assert keys.secret_key not in repr(keys)
    assert keys.session_token not in repr(keys)


@pytest.mark.parametrize(
    ("changed", "kind", "said"),
    [
        ({"AWS_ROLE_ARN": f"{ARN}s"}, StoreRefused, "refuses keys for .*/lakes: role not f"),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere"}, StoreRefused, "No such file .*: /nowhere"),
        ({"AWS_ENDPOINT_URL_STS": "http://127.0.0.1:9"}, Retryable, ":9 does not answer: .*refus"),
    ],
)
def test_a_role_that_gives_no_keys_is_named(
    known: Roles, tmp_path: Path, changed: dict[str, str], kind: type[SluiceError], said: str
) -> None:
    with using(known.environ(tmp_path, **changed)), pytest.raises(kind, match=said):
        locate("s3://lakes/lake")


def test_keys_and_profiles_come_before_a_role(known: Roles, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        assert keys_of_role(known.environ(tmp_path, **{name: "other"})) is None


def test_s3a_uses_a_web_identity(spark: SparkSession, known: Roles, tmp_path: Path) -> None:
    """Its JVM has these variables as properties, since a process that runs gets no new ones."""
    environ = known.environ(tmp_path)
    jvm: Any = spark._jvm
    properties = {
        "aws.roleArn": ARN,
        "aws.webIdentityTokenFile": environ["AWS_WEB_IDENTITY_TOKEN_FILE"],
        "aws.endpointUrlSts": known.store.endpoint,
        "aws.region": "us-east-1",
    }
    conf = jvm.org.apache.hadoop.conf.Configuration()
    for name, value in {
        "endpoint": known.store.endpoint,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "aws.credentials.provider": "software.amazon.awssdk.auth.credentials."
        "WebIdentityTokenFileCredentialsProvider",
    }.items():
        conf.set(f"fs.s3a.{name}", value)
    uri = f"s3a://{known.store.place()}/empty"
    for name, value in properties.items():
        jvm.System.setProperty(name, value)
    try:
        path = jvm.org.apache.hadoop.fs.Path(uri)
        files = jvm.org.apache.hadoop.fs.FileSystem.newInstance(path.toUri(), conf)
        files.create(path).close()
        assert files.exists(path)
        files.close()
    finally:
        for name in properties:
            jvm.System.clearProperty(name)
