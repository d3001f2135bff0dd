"""Connections of registries, as Airflow's variables have them."""

import json

import pytest

from sluice.sources.kafka.connection import registry_address

AS_JSON = json.dumps({"host": "https://host/api", "login": "me", "password": "secret"})


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://host:8081", ("http://host:8081", "", "")),
        ("https://me:se%2Fcret@host", ("https://host", "me", "se/cret")),
        ("https://host:8081/apis/ccompat/v7/", ("https://host:8081/apis/ccompat/v7", "", "")),
        ("registry://host:8081/https", ("http://host:8081", "", "")),
        (AS_JSON, ("https://host/api", "me", "secret")),
    ],
)
def test_an_address_has_its_port_path_and_login(given: str, address: tuple[str, str, str]) -> None:
    environ = {"AIRFLOW_CONN_SCHEMAS": given}
    assert registry_address("schemas", "shop.orders", environ) == address
