"""An S3-compatible store of the tests' own: SeaweedFS on free ports of loopback, in a folder.

It starts with one user who may do all, and is stopped with its folder. It has one bucket.
"""

import json
import os
import secrets
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyarrow.fs import FileSelector, FileSystem, S3FileSystem

from ports import free_port
from sluice.declare.filesystems import VARIABLES

BUCKET = "lakes"
PATIENCE = 240.0  # seconds
PORTS = ("master.port", "volume.port", "filer.port", "s3.port")
GRPC = tuple(f"{port}.grpc" for port in PORTS)
METRICS = "metricsPort"


@dataclass
class Store:
    """One server. `key` may do all; `reader` may only read and list, `blind` not list."""

    folder: Path
    ports: Mapping[str, int]
    key: tuple[str, str] = field(default_factory=lambda: (secrets.token_hex(8),) * 2)
    reader: tuple[str, str] = field(default_factory=lambda: (secrets.token_hex(8),) * 2)
    blind: tuple[str, str] = field(default_factory=lambda: (secrets.token_hex(8),) * 2)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports['s3.port']}"

    def environ(self, endpoint: str = "", key: tuple[str, str] | None = None) -> dict[str, str]:
        """What a process needs to use the store, as that user, directly or by a proxy."""
        user, secret = key or self.key
        return {
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ACCESS_KEY_ID": user,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def place(self) -> str:
        """An empty place in the only bucket: each bucket would take several of its volumes."""
        return f"{BUCKET}/{secrets.token_hex(4)}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no log and no file may hold."""
        return self.key

    def uri(self, place: str) -> str:
        """The URI of `bucket/key`."""
        return f"s3://{place}"

    @property
    def files(self) -> FileSystem:
        """The store as its owner sees it."""
        return S3FileSystem(
            access_key=self.key[0],
            secret_key=self.key[1],
            endpoint_override=self.endpoint,
            region="us-east-1",
            allow_bucket_creation=True,
        )

    def put(self, path: str, content: bytes | str) -> None:
        """Write an object at `bucket/key`."""
        with self.files.open_output_stream(path) as stream:
            stream.write(content.encode() if isinstance(content, str) else content)

    def copy(self, here: Path, there: str) -> None:
        """Write all files below a folder as objects below `bucket/prefix`."""
        for path in sorted(p for p in here.rglob("*") if p.is_file()):
            self.put(f"{there}/{path.relative_to(here).as_posix()}", path.read_bytes())

    def names(self, below: str) -> list[str]:
        """The objects below `bucket/prefix`."""
        found = self.files.get_file_info(FileSelector(below, recursive=True, allow_not_found=True))
        return sorted(f.path.removeprefix(f"{below}/") for f in found if f.is_file)


@contextmanager
def running(roles: Mapping[str, object] | None = None) -> Iterator[Store]:
    """A store with an empty bucket. `roles`: what its token service knows; it has none without."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-store-"))
    store = Store(folder, {name: free_port() for name in (*PORTS, *GRPC, METRICS)})
    try:
        with serving(store, [*_command(store), *_roles(store, roles)]):
            yield store
    finally:
        for port in store.ports.values():  # it puts them there whatever it is told
            for socket_ in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                socket_.unlink()


@contextmanager
def serving(
    store: Store, command: Sequence[str], environ: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server while it is needed, with its bucket; its folder goes with it."""
    with (store.folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=store.folder,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _wait(store, process)
        yield
    finally:
        process.kill()  # nobody needs what it holds
        process.wait()
        shutil.rmtree(store.folder, ignore_errors=True)


def _command(store: Store) -> list[str]:
    users = [
        ("owner", store.key, ["Admin"]),
        ("reader", store.reader, ["Read", "List"]),
        ("blind", store.blind, ["Read", "Write"]),
    ]
    known = [
        {
            "name": name,
            "credentials": [{"accessKey": key[0], "secretKey": key[1]}],
            "actions": actions,
        }
        for name, key, actions in users
    ]
    config = store.folder / "s3.json"
    config.write_text(json.dumps({"identities": known}))
    (store.folder / "data").mkdir()
    return [
        str(Path(sysconfig.get_path("scripts"), "weed")),
        "-logtostderr",
        *("server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={store.folder / 'data'}"),
        *("-s3", f"-s3.config={config}", "-s3.ip.bind=127.0.0.1", "-master.telemetry=false"),
        *("-master.volumeSizeLimitMB=256", "-volume.max=64", "-s3.iam=false", "-s3.port.iceberg=0"),
        *("-s3.port.lance=0", f"-s3.localSocket={store.folder / 's3'}"),
        f"-filer.localSocket={store.folder / 'filer'}",
        *(f"-{name}={port}" for name, port in store.ports.items()),
    ]


def _roles(store: Store, roles: Mapping[str, object] | None) -> list[str]:
    if roles is None:
        return []
    known = store.folder / "roles.json"
    known.write_text(json.dumps(roles))
    return [f"-s3.iam.config={known}"]


def _wait(store: Store, process: "subprocess.Popen[bytes]") -> None:
    """Wait until it takes an object: its volumes come up last."""
    end = time.monotonic() + PATIENCE
    while not _takes(store):
        log = (store.folder / "log").read_text(errors="replace")[-2000:]
        assert process.poll() is None, log
        assert time.monotonic() < end, log
        time.sleep(0.2)


def _takes(store: Store) -> bool:
    try:
        store.files.create_dir(BUCKET)
        store.put(f"{BUCKET}/ready", "yes")
    except OSError:
        return False
    return True


@contextmanager
def using(environ: Mapping[str, str]) -> Iterator[None]:
    """While this process has these variables, and no others of a store."""
    before = dict(os.environ)
    for name in [n for n in os.environ if n.startswith(VARIABLES)]:
        del os.environ[name]
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
