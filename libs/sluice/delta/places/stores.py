"""Access to a place by its URI: pyarrow's file system, and delta-rs' tables with their options.

Every table and file of Sluice is opened here. Endpoint, region and credentials come from the
environment, a profile or a role (`AWS_*`), and are kept nowhere else.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import (
    AwsStandardS3RetryStrategy,
    FileSystem,
    LocalFileSystem,
    PyFileSystem,
    S3FileSystem,
)

from sluice.declare.stores import scheme_of, store_of

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
ATTEMPTS = 6  # of one request, with growing pauses: some ten seconds in all
RETRIES = {"max_retries": str(ATTEMPTS - 1), "retry_timeout": "30s", "timeout": "60s"}
S3 = ("s3", "s3a")


def located(uri: str) -> tuple[FileSystem, str]:
    """Return the file system of a path or URI, and the path in it."""
    scheme = scheme_of(uri)
    if not scheme:
        return LocalFileSystem(), uri
    if scheme in S3:
        return _s3(tuple(sorted(_environ().items()))), uri.partition("://")[2].rstrip("/")
    found: tuple[FileSystem, str] = FileSystem.from_uri(uri)
    return found


def options(uri: str) -> dict[str, str] | None:
    """Return delta-rs' options for a table; None for a local path.

    Conditional writes are asked for explicitly where commits depend on them.
    """
    scheme, store = scheme_of(uri), store_of(uri)
    if scheme in ("", "file"):
        return None
    asked = {**RETRIES, **(store.options if store else {})}
    if scheme not in S3:
        return asked
    endpoint, region = _endpoint(), _region()
    named = {"endpoint_url": endpoint, "region": region}
    is_plain = endpoint.startswith("http://")
    return {**asked, **{k: v for k, v in named.items() if v}, "allow_http": str(is_plain).lower()}


def open_table(uri: str, version: int | None = None) -> DeltaTable:
    """Open the Delta table at a URI. Raises TableNotFoundError if there is none."""
    return DeltaTable(uri, version=version, storage_options=options(uri))


def is_table(uri: str) -> bool:
    """True if a Delta table lies at a URI."""
    return bool(DeltaTable.is_deltatable(uri, options(uri)))


def stored_mark(uri: str) -> tuple[object, ...] | None:
    """Return the tag of a store's object, with who asks for it; None if there is no such object."""
    files, path = located(uri)
    try:
        with files.open_input_file(path) as file:
            tag = file.metadata().get("ETag")
    except FileNotFoundError:
        return None
    return (tag, hash(tuple(sorted(_environ().items())))) if tag else None


def files_below(uri: str) -> PyFileSystem:
    """Return the folder of a table as a file system; names are percent-encoded as in its log."""
    return PyFileSystem(DeltaStorageHandler(uri, options(uri)))


def _environ() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_")}


def _endpoint() -> str:
    return next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), "")


def _region() -> str:
    """Return the region; a server of one's own has one, whatever it is called."""
    named = next((os.environ[name] for name in REGIONS if os.environ.get(name)), "")
    return named or ("us-east-1" if _endpoint() else "")


@lru_cache(maxsize=8)
def _s3(environ: tuple[tuple[str, str], ...]) -> S3FileSystem:  # noqa: ARG001 - what it depends on
    """Return the client for these variables; it looks for credentials as every AWS tool does."""
    named: dict[str, Any] = {"endpoint_override": _endpoint(), "region": _region()}
    return S3FileSystem(
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        allow_delayed_open=True,  # a small file is one request
        connect_timeout=5,
        request_timeout=60,
        **{name: value for name, value in named.items() if value},
    )
