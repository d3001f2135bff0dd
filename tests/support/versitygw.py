"""A second S3-compatible store of the tests' own: Versity's gateway over a folder.

It knows its owner only.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.installing import built_by_go
from tests.support.stores import Store, serving

from ports import free_port


@contextmanager
def running() -> Iterator[Store]:
    """A store with an empty bucket."""
    store = Store(Path(tempfile.mkdtemp(prefix="sluice-store-")), {"s3.port": free_port()})
    (store.folder / "data").mkdir()
    address = store.endpoint.removeprefix("http://")
    command = [
        built_by_go("versitygw"),
        "--quiet",
        "--port",
        address,
        "posix",
        str(store.folder / "data"),
    ]
    owner = dict(zip(("ROOT_ACCESS_KEY_ID", "ROOT_SECRET_ACCESS_KEY"), store.key, strict=True))
    with serving(store, command, owner):
        yield store
