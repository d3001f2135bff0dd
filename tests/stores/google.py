"""What only a store on Google Cloud says and does: `make test-stores` runs it on an emulator.

The emulator asks for no credentials, so the proxy refuses them in its place, as Google does.
"""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.crash.shop import day
from tests.stores.stored_shop import StoredShop
from tests.support.proxy import COMMIT, Harm, Proxy, Rule
from tests.support.stores import Store, using

from sluice.declare import filesystems
from sluice.delta.places import delta_rs
from sluice.delta.places.delta_rs import locate, open_table, store_fault
from sluice.engine import retries
from sluice.errors import Retryable, SluiceError, StoreRefused

Do = Callable[[StoredShop], None]
Kind = type[SluiceError]


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(retries, "PAUSES", (0.0,))
    monkeypatch.setattr(filesystems, "PATIENCE", timedelta(seconds=1))
    monkeypatch.setitem(delta_rs.RETRIES, "max_retries", "1")
    filesystems._google.cache_clear()
    yield
    filesystems._google.cache_clear()


def read_a_file(shop: StoredShop) -> None:
    files, path = locate(f"{shop.project.lake}/x")
    files.open_input_stream(path)


def open_a_table(shop: StoredShop) -> None:
    open_table(f"{shop.project.lake}/shop/sales")


def run(shop: StoredShop) -> None:
    shop.run(day(1))


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("do", [read_a_file, open_a_table, run])
@pytest.mark.parametrize(
    ("harm", "kind", "said"),
    [
        (Harm.UNKNOWN, StoreRefused, "rejects the credentials"),
        (Harm.FORBIDDEN, StoreRefused, "may not (?:read|list) there"),
        (Harm.MANY, Retryable, "does not answer as it should"),
        (Harm.BUSY, Retryable, "does not answer as it should"),
        (Harm.FAULT, Retryable, "does not answer as it should"),
        (Harm.DROPPED, Retryable, "does not answer as it should"),
    ],
)
def test_what_either_client_hears_has_one_name(
    shop: StoredShop, store: Store, proxied: Proxy, do: Do, harm: Harm, kind: Kind, said: str
) -> None:
    with using(store.environ(proxied.endpoint)), proxied.harming(Rule(harm)):
        found = fault(do, shop)
    assert type(found) is kind
    assert re.search(said, found.message)


def test_faults_that_pass_are_not_noticed(shop: StoredShop, store: Store, proxied: Proxy) -> None:
    rules = [
        Rule(Harm.MANY, "PUT", COMMIT, times=1),
        Rule(Harm.BUSY, "POST", "/upload/", times=1),
        Rule(Harm.DROPPED, "GET", "landing", times=1),
        Rule(Harm.CUT, "GET", r"\.parquet", times=1),
    ]
    with using(store.environ(proxied.endpoint)), proxied.harming(*rules):
        said = shop.run(day(1))
        assert {Harm.MANY, Harm.BUSY, Harm.DROPPED} <= set(proxied.done)
    assert {outcome.split()[1] for outcome in said} == {"committed"}
    shop.check()


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("do", [read_a_file, open_a_table, run])
def test_missing_servers_are_worth_another_try(shop: StoredShop, store: Store, do: Do) -> None:
    with using(store.environ("http://127.0.0.1:9")):
        found = fault(do, shop)
    assert type(found) is Retryable
    assert "the store on Google Cloud: the store does not answer" in found.message


@pytest.mark.parametrize("content", [None, "no key", '{"type": "external_account"}'])
@pytest.mark.parametrize("do", [read_a_file, open_a_table, run])
def test_a_file_of_credentials_that_can_not_be_read_is_named(
    shop: StoredShop, tmp_path: Path, do: Do, content: str | None
) -> None:
    key = tmp_path / "key.json"
    if content is not None:
        key.write_text(content)
    with using({"GOOGLE_APPLICATION_CREDENTIALS": str(key)}):
        found = fault(do, shop)
    assert type(found) is StoreRefused
    assert "the file of credentials can't be read" in found.message


@pytest.mark.parametrize("do", [open_a_table, run])
def test_a_bucket_that_is_not_there_is_named(shop: StoredShop, store: Store, do: Do) -> None:
    (shop.config / "sluice.yaml").write_text(f"lake: {store.uri('nowhere/lake')}\n")
    found = fault(do, shop)
    assert type(found) is StoreRefused
    assert "there is no bucket of this name" in found.message


def test_the_command_says_it_in_one_line(shop: StoredShop, store: Store, proxied: Proxy) -> None:
    with using(store.environ(proxied.endpoint)), proxied.harming(Rule(Harm.UNKNOWN)):
        done = shop.sluice("status")
    assert done.code == 2
    assert "the store rejects the credentials" in done.err
    assert "Traceback" not in done.err


def fault(do: Do, shop: StoredShop) -> SluiceError:
    """The name of what a client raises."""
    with pytest.raises(Exception) as raised:  # noqa: PT011 - each client has its own
        do(shop)
    named = store_fault(raised.value) or raised.value
    assert isinstance(named, SluiceError), named
    return named
