"""Delta tables by their URI: delta-rs, with the options for the store and its server."""

import json

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from sluice.declare.filesystems import (
    ATTEMPTS,
    access,
    endpoint_of,
    folder_names,
    located,
    region,
    uri_of,
)
from sluice.declare.stores import AZURE, GOOGLE, S3, scheme_of, store_of

__all__ = [
    "endpoint_of",
    "files_below",
    "folder_names",
    "is_table",
    "keeps_versions",
    "located",
    "open_table",
    "options",
    "region",
    "stored_stamp",
    "uri_of",
]

RETRIES = {"max_retries": str(ATTEMPTS - 1), "retry_timeout": "30s", "timeout": "60s"}


def options(uri: str) -> dict[str, str] | None:
    """Return delta-rs' options for a table; None for a local path.

    Conditional writes are requested explicitly if commits depend on them.
    """
    scheme, store = scheme_of(uri), store_of(uri)
    if scheme in ("", "file"):
        return None
    asked = {**RETRIES, **(store.options if store else {})}
    endpoint = endpoint_of(uri)
    if scheme in GOOGLE.schemes:
        return {**asked, **_emulated(endpoint)} if endpoint else asked
    if scheme not in (*S3.schemes, *AZURE.schemes):
        return asked
    named = {"endpoint_url": endpoint, "region": region()} if scheme in S3.schemes else {}
    is_plain = endpoint.startswith("http://")
    return {**asked, **{k: v for k, v in named.items() if v}, "allow_http": str(is_plain).lower()}


def _emulated(endpoint: str) -> dict[str, str]:
    """Return the key that names an emulator of Google's store; no option spares a login there."""
    key = {"gcs_base_url": endpoint.rstrip("/"), "disable_oauth": True}
    nobody = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    return {"google_service_account_key": json.dumps({**key, **nobody})}


def open_table(uri: str, version: int | None = None) -> DeltaTable:
    """Open the Delta table at a URI. Raises TableNotFoundError if there is none."""
    return DeltaTable(uri, version=version, storage_options=options(uri))


def is_table(uri: str) -> bool:
    """True if there is a Delta table at a URI."""
    return bool(DeltaTable.is_deltatable(uri, options(uri)))


def stored_stamp(uri: str) -> tuple[object, ...] | None:
    """Return the tag of a store's object, and the client used; None if there is no such object."""
    files, path = located(uri)
    try:
        with files.open_input_file(path) as file:
            known = file.metadata()
            tag = known.get("ETag") or known.get("generation")
    except FileNotFoundError:
        return None
    return (tag, hash(tuple(sorted(access().items())))) if tag else None


def keeps_versions(uri: str) -> bool:
    """True if the store has earlier versions of a table's objects, which it shows by their ids."""
    files, path = located(f"{uri}/_delta_log/{open_table(uri).version():020}.json")
    with files.open_input_file(path) as file:
        return "VersionId" in file.metadata()


def files_below(uri: str) -> PyFileSystem:
    """Return the folder of a table as a file system; names are percent-encoded as in its log."""
    return PyFileSystem(DeltaStorageHandler(uri, options(uri)))
