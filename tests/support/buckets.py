"""Buckets of SeaweedFS that keep versions, lock their objects or are full.

Its shell makes them. What it has no command for is asked of S3 by a signed request.
"""

import hashlib
import hmac
import subprocess
import sysconfig
import time
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree as ET

from tests.support.stores import PATIENCE, Store

RETENTION = (
    "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule>"
    "<DefaultRetention><Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention>"
    "</Rule></ObjectLockConfiguration>"
)
MEGABYTE = 1 << 20


def versioned(store: Store, bucket: str) -> None:
    """Make a bucket that keeps every version of its objects."""
    _shell(
        store, f"s3.bucket.create -name {bucket}", f"s3.bucket.versioning -name {bucket} -enable"
    )


def retained(store: Store, bucket: str) -> None:
    """Make a bucket in which nobody may delete a version of an object for a day."""
    _shell(store, f"s3.bucket.create -name {bucket} -withLock")
    status, said = signed(store, "PUT", f"/{bucket}", "object-lock=", RETENTION.encode())
    assert status == 200, said


def filled(store: Store, bucket: str) -> None:
    """Fill a bucket beyond a quota of a megabyte, which the server then enforces."""
    _shell(store, f"s3.bucket.quota -name={bucket} -op=set -sizeMB=1")
    store.put(f"{bucket}/other", bytes(2 * MEGABYTE))
    end = time.monotonic() + PATIENCE
    while "read only" not in (said := _shell(store, "s3.bucket.quota.enforce -apply")):
        assert time.monotonic() < end, said
        time.sleep(0.5)


def lifted(store: Store, bucket: str) -> None:
    """Take the quota from a bucket."""
    _shell(store, f"s3.bucket.quota -name={bucket} -op=disable")


def versions(store: Store, bucket: str) -> list[tuple[str, str]]:
    """Name and id of each version of each object; markers of folders and of deletion are none."""
    status, said = signed(store, "GET", f"/{bucket}", "max-keys=1000&versions=")
    assert status == 200, said
    found = [one for one in ET.fromstring(said) if one.tag.rpartition("}")[2] == "Version"]
    every = [(_text(one, "Key"), _text(one, "VersionId")) for one in found]
    return sorted(one for one in every if not one[0].endswith("/"))


def signed(
    store: Store, method: str, path: str, query: str = "", body: bytes = b""
) -> tuple[int, str]:
    """Ask S3 as the store's owner, and return status and body of the answer."""
    now = datetime.now(UTC)
    day, at = f"{now:%Y%m%d}", f"{now:%Y%m%dT%H%M%SZ}"
    host, digest = store.endpoint.removeprefix("http://"), hashlib.sha256(body).hexdigest()
    headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": at}
    names, scope = ";".join(headers), f"{day}/us-east-1/s3/aws4_request"
    lines = [f"{name}:{value}" for name, value in headers.items()]
    asked = "\n".join([method, quote(path), query, *lines, "", names, digest])
    text = "\n".join(["AWS4-HMAC-SHA256", at, scope, hashlib.sha256(asked.encode()).hexdigest()])
    key = f"AWS4{store.key[1]}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    credential = f"Credential={store.key[0]}/{scope}, SignedHeaders={names}"
    headers["authorization"] = f"AWS4-HMAC-SHA256 {credential}, Signature={key.hex()}"
    connection = HTTPConnection(host, timeout=60)
    try:
        connection.request(method, f"{quote(path)}?{query}", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def _text(one: ET.Element, name: str) -> str:
    return next(part.text or "" for part in one if part.tag.rpartition("}")[2] == name)


def _shell(store: Store, *commands: str) -> str:
    """Return what SeaweedFS's shell says to these commands."""
    server = {name: store.ports[f"{name}.port"] for name in ("master", "filer")}
    addresses = [
        f"-{name}=127.0.0.1:{port}.{store.ports[f'{name}.port.grpc']}"
        for name, port in server.items()
    ]
    done = subprocess.run(
        [str(Path(sysconfig.get_path("scripts"), "weed")), "shell", *addresses],
        input="\n".join(["lock", *commands, "unlock"]),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    said = done.stdout + done.stderr
    assert "error:" not in said, said
    return said
