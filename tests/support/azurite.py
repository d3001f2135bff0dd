"""A store of the tests' own that speaks as Azure's blobs do: Azurite, from npm.

It knows its owner only.
"""

import base64
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow.fs import AzureFileSystem
from tests.support import installing
from tests.support.stores import Store, serving

from ports import free_port


@dataclass
class Azurite(Store):
    """One server; its buckets are containers of the account that `key` names first."""

    def environ(self, endpoint: str = "", key: tuple[str, str] | None = None) -> dict[str, str]:
        account, secret = key or self.key
        return {
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": endpoint or self.endpoint,
            "AZURE_STORAGE_ACCOUNT_NAME": account,
            "AZURE_STORAGE_ACCOUNT_KEY": secret,
        }

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.key[1:]

    def uri(self, place: str) -> str:
        container, _, below = place.partition("/")
        return f"abfss://{container}@{self.key[0]}.dfs.core.windows.net/{below}"

    @property
    def files(self) -> AzureFileSystem:
        server = f"127.0.0.1:{self.ports['s3.port']}"
        return AzureFileSystem(
            self.key[0],
            account_key=self.key[1],
            blob_storage_authority=server,
            dfs_storage_authority=server,
            blob_storage_scheme="http",
            dfs_storage_scheme="http",
        )


@contextmanager
def running() -> Iterator[Azurite]:
    """A store with an empty container."""
    key = (secrets.token_hex(8), base64.b64encode(secrets.token_bytes(32)).decode())
    store = Azurite(Path(tempfile.mkdtemp(prefix="sluice-store-")), {"s3.port": free_port()}, key)
    (store.folder / "data").mkdir()
    command = [
        *(installing.azurite(), "--blobHost", "127.0.0.1"),
        *("--blobPort", str(store.ports["s3.port"])),
        *("--location", str(store.folder / "data"), "--silent", "--disableTelemetry"),
        "--skipApiVersionCheck",  # clients may be newer than it
    ]
    with serving(store, command, {"AZURITE_ACCOUNTS": ":".join(key)}):
        yield store
