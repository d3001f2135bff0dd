"""A broker that wants a login, and one that wants certificates of both sides.

Clients are set up as users do it, by an Airflow connection. What either side refuses is named at
once, and what must stay secret is nowhere: not in outputs, not in the lake.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from secrets import token_urlsafe

import pytest
from tests.cli.trips import Here
from tests.security.spellings import spellings
from tests.sources.kafka.conftest import CONNECTION
from tests.support.certificates import Authority

from broker import Broker, Secured, running
from sluice.errors import ExitCode

pytestmark = pytest.mark.usefixtures("broker")

PASSWORD, WRONG = (f"{token_urlsafe(12)}/+&" for _ in range(2))
PIPELINE = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
sources:
  events:
    kafka: {topic: events, connection: shop_kafka}
    value: {format: json}
    schema: id INT
    key: [id]
"""
NO_LOGIN = "error: trips.events: can't log in to the brokers of the connection 'shop_kafka': "


class Setting:
    """A broker with its authority, another authority that nobody knows, and a client's key."""

    def __init__(self, folder: Path) -> None:
        self.authority, self.stranger = Authority(folder), Authority(folder, "stranger")
        self.client = self.authority.issue("client").read_text()
        self.unknown = self.stranger.issue("unknown").read_text()
        broker = self.authority.issue("broker")
        self.secured = Secured("ann", PASSWORD, broker, self.authority.certificate)

    def login(self, password: str = PASSWORD, mechanism: str = "SCRAM-SHA-256") -> str:
        """A connection with the fields of Airflow's form."""
        place = {"host": "127.0.0.1", "port": self.secured.login_port}
        extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": mechanism}
        return connection(extra, **place, login="ann", password=password)

    def tls(self, trusted: Authority, own: str) -> str:
        """A connection by certificates; `own`: the client's, with its key."""
        place = {"bootstrap.servers": f"127.0.0.1:{self.secured.tls_port}"}
        mine = {"ssl.certificate.pem": own, "ssl.key.pem": own} if own else {}
        trust = {"security.protocol": "SSL", "ssl.ca.location": str(trusted.certificate)}
        return connection({**place, **trust, **mine})


def connection(extra: Mapping[str, str], **fields: object) -> str:
    return json.dumps({"conn_type": "kafka", **fields, "extra": extra})


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    given = Setting(tmp_path_factory.mktemp("certificates"))
    with running(secured=given.secured) as broker:
        fill(broker)
        yield given


def fill(broker: Broker) -> None:
    broker.send(broker.topic("events"), [(None, b'{"id": 1}'), (None, b'{"id": 2}')])


@pytest.fixture
def shop(tmp_path: Path) -> Here:
    project = Here(tmp_path)
    project.declare(PIPELINE)
    return project


def leaks(folder: Path, printed: str, setting: Setting) -> list[str]:
    """Places where a secret stands, in any spelling."""
    keys = (text.splitlines()[1] for text in (setting.client, setting.unknown))
    words = [word for secret in (PASSWORD, WRONG, *keys) for word in spellings(secret)]
    places = {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    places["printed"] = printed.encode()
    return [name for name, text in places.items() if any(word in text for word in words)]


@pytest.mark.parametrize("way", ["login", "certificates"])
def test_a_source_is_read_through_a_connection_with_secrets(
    way: str,
    setting: Setting,
    shop: Here,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    by_certificates = setting.tls(setting.authority, setting.client)
    monkeypatch.setenv(CONNECTION, setting.login() if way == "login" else by_certificates)
    printed = ""
    for words in (["run", "trips"], ["status"], ["doctor"], ["plan", "--debug"]):
        ended = shop.sluice(*words)
        assert ended.code == 0, ended.err
        printed += ended.out + ended.err
    assert [row["id"] for row in shop.sluice("read", "events", "--json").records] == [1, 2]
    assert "lag: trips.events is up to date" in printed
    assert leaks(shop.folder, printed + "".join(capfd.readouterr()), setting) == []


REFUSED = {
    "a wrong password": "Authentication failed",
    "another mechanism": "mechanism handshake failed",
    "an authority that is not the broker's": "certificate verify failed",
    "a certificate that the broker does not know": " alert ",
    "no certificate": " alert ",
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_connection_that_is_refused_is_named_at_once(
    what: str,
    setting: Setting,
    shop: Here,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    ways = (
        setting.login(WRONG),
        setting.login(mechanism="PLAIN"),
        setting.tls(setting.stranger, setting.client),
        setting.tls(setting.authority, setting.unknown),
        setting.tls(setting.authority, ""),
    )
    monkeypatch.setenv(CONNECTION, dict(zip(REFUSED, ways, strict=True))[what])
    ended = shop.sluice("run", "trips")
    assert (ended.code, ended.err.startswith(NO_LOGIN)) == (ExitCode.CONFIGURATION, True), ended.err
    assert REFUSED[what] in ended.lines[0]
    assert ended.lines[1].startswith("hint: correct its login and password, or the settings of")
    status = shop.sluice("status")
    assert "lag: trips.events is not known: can't log in to the brokers of the" in status.out
    assert not (shop.folder / "lake/trips/events").exists()
    printed = ended.out + ended.err + status.out + status.err + "".join(capfd.readouterr())
    assert leaks(shop.folder, printed, setting) == []
