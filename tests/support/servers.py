"""The stores that the tests can start, by the names that `--store` takes."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from tests.support import azurite, google, stores, versitygw
from tests.support.stores import Store

SERVERS: Mapping[str, Callable[[], AbstractContextManager[Store]]] = {
    "seaweedfs": stores.running,
    "versitygw": versitygw.running,
    "azurite": azurite.running,
    "gcs": google.running,
}
