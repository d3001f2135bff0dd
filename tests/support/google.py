"""A store of the tests' own that speaks as Google's does: fake-gcs-server behind the XML API.

It asks for no credentials.
"""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pyarrow.fs import GcsFileSystem
from tests.support import relay
from tests.support.installing import built_by_go
from tests.support.stores import BUCKET, Store, serving

from ports import free_port


@dataclass
class Google(Store):
    """One server, as its emulators are named."""

    def environ(self, endpoint: str = "", key: tuple[str, str] | None = None) -> dict[str, str]:
        return {"STORAGE_EMULATOR_HOST": endpoint or self.endpoint}

    def place(self) -> str:
        """An empty place in a new bucket: the emulator's lists scan all of a bucket."""
        bucket = f"{BUCKET}-{secrets.token_hex(4)}"
        self.files.create_dir(bucket)
        return f"{bucket}/place"

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    def uri(self, place: str) -> str:
        return f"gs://{place}"

    @property
    def files(self) -> GcsFileSystem:
        server = urlsplit(self.endpoint)
        return GcsFileSystem(
            anonymous=True,
            scheme=server.scheme,
            endpoint_override=server.netloc,
            project_id="tests",
        )


@contextmanager
def running() -> Iterator[Google]:
    """A store with an empty bucket."""
    behind = free_port()
    command = [
        *(built_by_go("fake-gcs-server"), "-backend", "memory"),
        *("-scheme", "http", "-log-level", "error"),
        *("-host", "127.0.0.1", "-port", str(behind)),
    ]
    folder = Path(tempfile.mkdtemp(prefix="sluice-store-"))
    with relay.process("tests.support.xml_api", f"http://127.0.0.1:{behind}") as port:
        store = Google(folder, {"s3.port": port})
        with serving(store, command):
            yield store
