"""Places on Azure, by their URIs and the variables that name the server and the account."""

import pytest

from sluice.delta.places.delta_rs import endpoint_of, locate, options, store_fault, uri_of
from sluice.errors import StoreRefused

LAKE = "abfss://lakes@shops.dfs.core.windows.net/retail/lake/"
KEY = "c2VjcmV0"


@pytest.fixture(autouse=True)
def _account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_STORAGE_USE_EMULATOR", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)


def test_a_container_is_the_first_part_of_a_path() -> None:
    files, path = locate(LAKE)
    assert files.type_name == "abfs"
    assert path == "lakes/retail/lake"
    assert locate("abfss://lakes@shops.dfs.core.windows.net")[1] == "lakes"


def test_a_files_uri_names_container_and_account() -> None:
    file = uri_of("lakes/retail/lake/x y.json", LAKE)
    assert file == "abfss://lakes@shops.dfs.core.windows.net/retail/lake/x y.json"
    assert uri_of("lakes/retail/x.json", "s3://lakes/retail") == "s3://lakes/retail/x.json"


def test_the_server_is_azures_own_unless_a_variable_names_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert endpoint_of(LAKE) == ""
    assert (options(LAKE) or {})["allow_http"] == "false"
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "https://blobs.example.org")
    assert endpoint_of(LAKE) == "https://blobs.example.org"
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", "http://127.0.0.1:10000")
    assert endpoint_of(LAKE) == "http://127.0.0.1:10000"
    assert (options(LAKE) or {})["allow_http"] == "true"


def test_no_secret_is_an_option() -> None:
    assert KEY not in (options(LAKE) or {}).values()


@pytest.mark.parametrize("key", ["no key!", "c2VjcmV0c", "c2Vj cmV0"])
def test_a_key_of_other_characters_is_refused_before_the_client_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", key)
    with pytest.raises(OSError, match="Azure Error") as refused:
        locate(LAKE)
    fault = store_fault(refused.value)
    assert isinstance(fault, StoreRefused)
    assert "rejects the account's key" in str(fault)
    assert key not in str(refused.value)
