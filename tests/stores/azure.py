"""What only a store on Azure says and does: `make test-stores` runs it on Azurite."""

import base64

import pytest
from tests.crash.shop import day
from tests.stores.stored_shop import StoredShop
from tests.support.stores import Store, using

from sluice.errors import Retryable, SluiceError, StoreRefused

OTHER_KEY = base64.b64encode(b"of another account").decode()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("changed", "kind", "said"),
    [
        ({"AZURE_STORAGE_ACCOUNT_KEY": OTHER_KEY}, StoreRefused, "rejects the account's key"),
        ({"AZURE_STORAGE_ACCOUNT_KEY": "no key!"}, StoreRefused, "rejects the account's key"),
        ({"AZURITE_BLOB_STORAGE_URL": "http://127.0.0.1:9"}, Retryable, "does not answer"),
    ],
)
def test_faults_are_named(
    shop: StoredShop, store: Store, changed: dict[str, str], kind: type[SluiceError], said: str
) -> None:
    refused = pytest.raises(kind, match=f"the store on Azure: .*{said}")
    with using({**store.environ(), **changed}), refused:
        shop.run(day(1))


def test_a_container_that_is_not_there_is_named(shop: StoredShop, store: Store) -> None:
    settings = shop.config / "sluice.yaml"
    settings.write_text(f"lake: {store.uri('nowhere/lake')}\n")
    with pytest.raises(StoreRefused, match="there is no container of this name"):
        shop.run(day(1))


def test_the_command_says_it_in_one_line(shop: StoredShop, store: Store) -> None:
    with using({**store.environ(), "AZURE_STORAGE_ACCOUNT_KEY": OTHER_KEY}):
        done = shop.sluice("status")
    assert done.code == 2
    assert "the store on Azure: the store rejects the account's key" in done.err
    assert "Traceback" not in done.err
    assert OTHER_KEY not in done.err
