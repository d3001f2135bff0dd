"""Access to the files at a path or URI: pyarrow's file system, with the server and its keys.

Endpoint, region and credentials come from the environment (`AWS_*`, `AZURE_*`, `GOOGLE_*`), a
profile or a role, and are written nowhere.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from pyarrow.fs import (
    AwsStandardS3RetryStrategy,
    AzureFileSystem,
    FileSelector,
    FileSystem,
    FileType,
    GcsFileSystem,
    LocalFileSystem,
    S3FileSystem,
)

from sluice.declare.stores import AZURE, GOOGLE, S3, Credentials, keys_of_role, scheme_of

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
ATTEMPTS = 6  # of one request, with growing pauses: some ten seconds in all
AZURE_KEYS = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY")
AZURE_TOKENS = ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY")
AZURE_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
EMULATED, EMULATOR = "AZURE_STORAGE_USE_EMULATOR", "AZURITE_BLOB_STORAGE_URL"
GOOGLE_EMULATOR = "STORAGE_EMULATOR_HOST"
VARIABLES = ("AWS_", "AZUR", "GOOGLE_", GOOGLE_EMULATOR)  # how those of stores begin
PATIENCE = timedelta(seconds=10)  # with Google's store, which is asked again until then


def locate(uri: str) -> tuple[FileSystem, str]:
    """Return the file system of a path or URI, and the path in it."""
    scheme = scheme_of(uri)
    if not scheme:
        return LocalFileSystem(), uri
    if scheme in S3.schemes:
        files = _s3(tuple(sorted(access().items())), keys_of_role())
        return files, uri.partition("://")[2].rstrip("/")
    if scheme in AZURE.schemes:
        parts = urlsplit(uri)  # abfss://container@account.dfs.core.windows.net/folder
        container, _, host = parts.netloc.rpartition("@")
        files = _azure(host.partition(".")[0], tuple(sorted(access().items())))
        return files, f"{container}/{parts.path.strip('/')}".rstrip("/")
    if scheme in GOOGLE.schemes:
        files = _google(tuple(sorted(access().items())))
        return files, uri.partition("://")[2].rstrip("/")
    found: tuple[FileSystem, str] = FileSystem.from_uri(uri)
    return found


def folder_names(uri: str) -> list[str]:
    """Return the names of the folders in a folder; none if there is no such folder.

    pyarrow lists no folders in Google's store, so there, all files below are listed.
    """
    files, path = locate(uri)
    is_flat = isinstance(files, GcsFileSystem)
    found = files.get_file_info(FileSelector(path, recursive=is_flat, allow_not_found=True))
    if not is_flat:
        return sorted(f.base_name for f in found if f.type == FileType.Directory)
    below = (f.path.removeprefix(f"{path}/").partition("/") for f in found)
    return sorted({name for name, slash, _ in below if slash})


def uri_of(path: str, beside: str) -> str:
    """Return the URI of a path in the file system of another URI."""
    scheme = beside.partition("://")[0]
    if scheme.lower() not in AZURE.schemes:
        return f"{scheme}://{path}"
    container, _, below = path.partition("/")
    return f"{scheme}://{container}@{urlsplit(beside).netloc.rpartition('@')[2]}/{below}"


def endpoint_of(uri: str) -> str:
    """Return the server that the environment names for a store; '' for the provider's own."""
    scheme = scheme_of(uri)
    if scheme in GOOGLE.schemes:
        return _google_emulator()
    return _azure_endpoint() if scheme in AZURE.schemes else _first_set(*ENDPOINTS)


def access() -> Mapping[str, str]:
    """Return the variables by which this process reaches stores."""
    return {n: value for n, value in os.environ.items() if n.startswith(VARIABLES)}


def _first_set(*variables: str) -> str:
    return next((os.environ[name] for name in variables if os.environ.get(name)), "")


def region() -> str:
    """Return the region; your own server has one, too, under any name."""
    return _first_set(*REGIONS) or ("us-east-1" if _first_set(*ENDPOINTS) else "")


@lru_cache(maxsize=8)
def _s3(environ: tuple[tuple[str, str], ...], keys: Credentials | None) -> S3FileSystem:  # noqa: ARG001
    """Return the client for these variables. Without keys, it finds credentials like every AWS
    tool.
    """
    named: dict[str, Any] = {"endpoint_override": _first_set(*ENDPOINTS), "region": region()}
    named |= asdict(keys) if keys else {}
    return S3FileSystem(
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        allow_delayed_open=True,  # a small file is one request
        connect_timeout=5,
        request_timeout=60,
        **{name: value for name, value in named.items() if value},
    )


def _azure_endpoint() -> str:
    """Return the server that the environment names; the emulator Azurite has separate variables."""
    is_emulated = _first_set(EMULATED).lower() in ("1", "true")
    return _first_set(*((EMULATOR,) if is_emulated else AZURE_ENDPOINTS))


@lru_cache(maxsize=8)
def _azure(account: str, environ: tuple[tuple[str, str], ...]) -> AzureFileSystem:  # noqa: ARG001
    """Return the client for these variables: by key, token, or Azure's usual credentials.

    Raises OSError for a key that is not base64: the client would end the process.
    """
    try:
        base64.b64decode(_first_set(*AZURE_KEYS), validate=True)
    except binascii.Error as error:
        raise OSError(f"Azure Error: the key is no Base64 encoded string: {error}") from None
    named = {"account_key": _first_set(*AZURE_KEYS), "sas_token": _first_set(*AZURE_TOKENS)}
    if endpoint := _azure_endpoint():
        server = urlsplit(endpoint)
        for service in ("blob", "dfs"):
            named[f"{service}_storage_authority"] = server.netloc
            named[f"{service}_storage_scheme"] = server.scheme
    return AzureFileSystem(account, **{name: value for name, value in named.items() if value})


def _google_emulator() -> str:
    """Return the emulator's address from the environment, which may have a scheme or none."""
    named = _first_set(GOOGLE_EMULATOR)
    return named if "://" in named or not named else f"http://{named}"


@lru_cache(maxsize=8)
def _google(environ: tuple[tuple[str, str], ...]) -> GcsFileSystem:  # noqa: ARG001
    """Return the client for these variables, or by Google's usual credentials.

    An emulator needs none.
    """
    server = urlsplit(_google_emulator())
    named = {"anonymous": True, "scheme": server.scheme, "endpoint_override": server.netloc}
    return GcsFileSystem(retry_time_limit=PATIENCE, **(named if server.netloc else {}))
