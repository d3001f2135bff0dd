"""Places on Google Cloud, by their URIs and the variables that name credentials or an emulator."""

import pytest

from sluice.delta.places.delta_rs import endpoint_of, locate, options, store_fault, uri_of
from sluice.errors import StoreRefused

LAKE = "gs://lakes/retail/lake/"
NO_TOKEN = (
    "Generic GCS error: Error performing GET http://169.254.169.254/computeMetadata/v1/instance",
    "google::cloud::Status(UNAVAILABLE: Could not create a OAuth2 access token; CURL error [6]",
)


@pytest.fixture(autouse=True)
def _google(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/keys/lake.json")


def test_a_bucket_is_the_first_part_of_a_path() -> None:
    files, path = locate(LAKE)
    assert (files.type_name, path) == ("gcs", "lakes/retail/lake")
    assert locate("gs://lakes")[1] == "lakes"
    assert uri_of("lakes/retail/x y.json", LAKE) == "gs://lakes/retail/x y.json"


def test_the_server_is_googles_own_unless_an_emulator_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert endpoint_of(LAKE) == ""
    assert "google_service_account_key" not in (options(LAKE) or {})
    for named in ("http://127.0.0.1:4443", "127.0.0.1:4443"):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", named)
        assert endpoint_of(LAKE) == "http://127.0.0.1:4443"
        key = (options(LAKE) or {})["google_service_account_key"]
        assert '"gcs_base_url": "http://127.0.0.1:4443"' in key
        assert '"private_key": ""' in key


@pytest.mark.parametrize("said", NO_TOKEN)
def test_a_machine_without_credentials_is_named(said: str) -> None:
    found = store_fault(OSError(said))
    assert isinstance(found, StoreRefused)
    assert "the store on Google Cloud: no credentials were found" in found.message
    assert "GOOGLE_APPLICATION_CREDENTIALS" in found.hint
