"""Keys that stand in no variable: they come from a profile, or from a container's own endpoint."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.crash.shop import FIRST, day
from tests.stores.stored_shop import StoredShop
from tests.support.java import LEAN
from tests.support.lake import CONF
from tests.support.stores import Store, using

from daemons import is_listening
from ports import free_port
from sluice.delta.places.delta_rs import open_table
from sluice.errors import SluiceError

BY_SPARK = "lake: s3://{place}/lake\nspark: {{small_batches: spark, commit: spark, conf: {conf}}}\n"
INGEST = ("ingest", "sales", "--start", "2024-01-01", "--end", "2024-01-02")


def keyless(store: Store) -> dict[str, str]:
    """The store's variables without its keys, and no file of this machine's own."""
    nowhere = dict.fromkeys(("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"), os.devnull)
    return {**{n: v for n, v in store.environ().items() if "KEY" not in n}, **nowhere}


def profile(store: Store, folder: Path) -> dict[str, str]:
    """The variables by which a profile named `lake` is chosen."""
    file = folder / "credentials"
    user, secret = store.key
    file.write_text(
        "[default]\naws_access_key_id = other\naws_secret_access_key = other\n"
        f"[lake]\naws_access_key_id = {user}\naws_secret_access_key = {secret}\n"
    )
    return {**keyless(store), "AWS_SHARED_CREDENTIALS_FILE": str(file), "AWS_PROFILE": "lake"}


@contextmanager
def container(store: Store, folder: Path) -> Iterator[dict[str, str]]:
    """An endpoint that gives out keys for an hour, as a container's host does."""
    until = datetime.now(UTC) + timedelta(hours=1)
    answer = {
        "AccessKeyId": store.key[0],
        "SecretAccessKey": store.key[1],
        "Token": "",
        "Expiration": f"{until:%Y-%m-%dT%H:%M:%SZ}",
    }
    (folder / "keys").write_text(json.dumps(answer))
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind=127.0.0.1"]
    host = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        while not is_listening(port):
            assert host.poll() is None
        uri = f"http://127.0.0.1:{port}/keys"
        yield {**keyless(store), "AWS_CONTAINER_CREDENTIALS_FULL_URI": uri}
    finally:
        host.kill()
        host.wait()


def delivered_and_read(shop: StoredShop) -> None:
    shop.run(day(1))
    shop.check()


def test_profiles_serve_tables_and_files(shop: StoredShop, store: Store, tmp_path: Path) -> None:
    with using(profile(store, tmp_path)):
        delivered_and_read(shop)


def test_profiles_without_rights_fail(shop: StoredShop, store: Store, tmp_path: Path) -> None:
    with (
        using({**profile(store, tmp_path), "AWS_PROFILE": "default"}),
        pytest.raises(SluiceError, match="key"),
    ):
        shop.run(day(1))


def test_container_endpoints_are_used(shop: StoredShop, store: Store, tmp_path: Path) -> None:
    with container(store, tmp_path) as environ, using(environ):
        delivered_and_read(shop)


def sluice(shop: StoredShop, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sluice.cli.main", *words, "--config", str(shop.config)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_sparks_of_commands_use_a_profile(shop: StoredShop, store: Store, tmp_path: Path) -> None:
    (shop.config / "sluice.yaml").write_text(
        BY_SPARK.format(place=shop.bucket, conf=json.dumps(CONF))
    )
    shop.land(1, *FIRST)
    with using({**profile(store, tmp_path), **LEAN}):
        done = sluice(shop, *INGEST)
        assert done.returncode == 0, done.stderr
        shop.check()
        (last,) = open_table(shop.uri("sales")).history(1)
        assert "Spark" in last["engineInfo"], last
