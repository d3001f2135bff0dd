"""The login of a schema registry reaches only the address that its connection names."""

import pytest
from tests.support.registry import registry

from sluice.errors import UsageError
from sluice.sources.kafka.connection import Registry

SCHEMA = {"schema": '"long"'}
LOGIN = "Basic bWU6c2VjcmV0"


def test_a_redirect_to_another_host_is_refused_before_it_is_asked() -> None:
    heard = list[tuple[str, str | None]]()
    with registry({"/schemas/ids/1": SCHEMA}, heard) as other:
        moved = {"/schemas/ids/1": f"{other}/schemas/ids/1"}
        with registry(moved) as address, pytest.raises(UsageError) as refused:
            Registry("shop.events", "shop_registry", address, "me", "secret").schema(1)
    assert heard == []
    assert f"'shop_registry' redirects to {other}" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_redirect_within_the_registry_is_followed() -> None:
    heard = list[tuple[str, str | None]]()
    with registry(
        {"/schemas/ids/1": "/api/schemas/ids/1", "/api/schemas/ids/1": SCHEMA}, heard
    ) as at:
        asked = Registry("shop.events", "shop_registry", at, "me", "secret")
        assert asked.schema(1) == SCHEMA
    assert heard == [("/schemas/ids/1", LOGIN), ("/api/schemas/ids/1", LOGIN)]
