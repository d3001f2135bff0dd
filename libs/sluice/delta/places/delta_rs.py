"""Delta tables by their URI: delta-rs, with the options for the store and its server, and its
errors in plain words.

delta-rs and pyarrow pass on the store's own codes in texts of several lines. A fault that may pass
is Retryable; one that lasts is StoreRefused.
"""

import json
import re
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from sluice.declare.filesystems import (
    ATTEMPTS,
    access,
    endpoint_of,
    folder_names,
    locate,
    region,
    uri_of,
)
from sluice.declare.stores import AZURE, GOOGLE, S3, scheme_of, store_of
from sluice.errors import Retryable, SluiceError, StoreRefused

__all__ = [
    "endpoint_of",
    "files_below",
    "folder_names",
    "is_table",
    "keeps_versions",
    "locate",
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
        return {**asked, **_emulator_key(endpoint)} if endpoint else asked
    if scheme not in (*S3.schemes, *AZURE.schemes):
        return asked
    named = {"endpoint_url": endpoint, "region": region()} if scheme in S3.schemes else {}
    is_plain = endpoint.startswith("http://")
    return {**asked, **{k: v for k, v in named.items() if v}, "allow_http": str(is_plain).lower()}


def _emulator_key(endpoint: str) -> dict[str, str]:
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
    files, path = locate(uri)
    try:
        with files.open_input_file(path) as file:
            known = file.metadata()
            tag = known.get("ETag") or known.get("generation")
    except FileNotFoundError:
        return None
    return (tag, hash(tuple(sorted(access().items())))) if tag else None


def keeps_versions(uri: str) -> bool:
    """True if the store has earlier versions of a table's objects, which it shows by their ids."""
    files, path = locate(f"{uri}/_delta_log/{open_table(uri).version():020}.json")
    with files.open_input_file(path) as file:
        return "VersionId" in file.metadata()


def files_below(uri: str) -> PyFileSystem:
    """Return the folder of a table as a file system; names are percent-encoded as in its log."""
    return PyFileSystem(DeltaStorageHandler(uri, options(uri)))


_OF_STORE = re.compile(
    r"S3 error|AWS Error|GCS error|google::cloud::Status|"
    r"Azure [Ee]rror|MicrosoftAzure|Hierarchical Namespace|"
    r"Kernel error|privileges to complete|Error performing (?:GET|PUT|HEAD|DEL|"
    r"POST|list|bulk)|error sending request|HTTP error|In bucket|'\S+' in bucket|object store|"
    r"Failed to (?:read|write|parse) .*External:|hadoop\.fs\.s3a\.|amazon\.awssdk|\(Service: S3,"
)
_PLACE = re.compile(
    r"s3a?://([^\s/:]+)|https?://[^\s/?]+/([^\s/?]+)|[Bb]ucket '([^']+)'|<BucketName>([^<]+)<"
)
_AZURE = re.compile(r"Azure|AuthorizationFailure|AuthenticationFailed|Hierarchical Namespace")
_GOOGLE = re.compile(r"GCS error|google::cloud::Status")
_OF_A_DISK = "LocalFileSystem"
_FULL = re.compile(r"No space left on device|[Dd]isk quota exceeded|\(os error (?:28|122)\)")
_METHOD = re.compile(r"performing (?:(PUT|POST|DELETE)|(GET|HEAD|list))")


@dataclass(frozen=True)
class _Known:
    """A fault, found by words in the store's answer."""

    words: str
    what: str
    hint: str


_LASTING = (
    _Known(
        r"(?:open|decode) service account file|Cannot open credentials file|"
        r"INVALID_ARGUMENT.*OAuth2 access token",
        "the file of credentials can't be read",
        "name the file of a service account's key in GOOGLE_APPLICATION_CREDENTIALS; a workload "
        "identity file is not supported",
    ),
    _Known(
        r"169\.254\.169\.254/computeMetadata|OAuth2 access token.*CURL error \[6\]",
        "no credentials were found",
        "set GOOGLE_APPLICATION_CREDENTIALS, or run under a service account",
    ),
    _Known(
        r"AuthenticationRequired|UNAUTHENTICATED|invalid_(?:grant|client)",
        "the store rejects the credentials",
        "check GOOGLE_APPLICATION_CREDENTIALS and the clock",
    ),
    _Known(
        r"PERMISSION_DENIED|does not have storage\.",
        "the credentials may not {do} there",
        "grant `Storage Object Admin` for the lake, and `Storage Object Viewer` for the landing "
        "folder",
    ),
    _Known(
        r"ContainerNotFound|container does not exist",
        "there is no container of this name",
        "create it, or correct `lake` or the source's `path`",
    ),
    _Known(
        r"AuthenticationFailed|AuthorizationFailure|failed to authenticate|Invalid Access Key|"
        r"Base64 encoded string",
        "the store rejects the account's key or token",
        "check AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, and the clock",
    ),
    _Known(
        r"AuthorizationPermissionMismatch|InsufficientAccountPermissions",
        "the credentials may not {do} there",
        "grant `Storage Blob Data Contributor` for the lake, and `Storage Blob Data Reader` for "
        "the landing folder",
    ),
    _Known(
        r"NoSuchBucket|NO_SUCH_BUCKET|bucket does not exist|UnknownStoreException",
        "there is no bucket of this name",
        "create it, or correct `lake`, the source's `path` or AWS_ENDPOINT_URL",
    ),
    _Known(
        r"InvalidAccessKeyId|INVALID_ACCESS_KEY_ID|UNRECOGNIZED_CLIENT",
        "the store does not know the access key",
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    ),
    _Known(
        r"SignatureDoesNotMatch|SIGNATURE_DOES_NOT_MATCH",
        "the secret key is not that of the access key",
        "set AWS_SECRET_ACCESS_KEY again, or AWS_PROFILE",
    ),
    _Known(
        r"ExpiredToken|EXPIRED_TOKEN|TokenRefreshRequired",
        "the credentials have expired",
        "log in again, or renew the role's session",
    ),
    _Known(
        r"RequestTimeTooSkewed|REQUEST_TIME_TOO_SKEWED",
        "this machine's clock differs too much from the store's",
        "set the clock, by NTP for example",
    ),
    _Known(
        r"AuthorizationHeaderMalformed|PermanentRedirect|IllegalLocationConstraint|"
        r"301 Moved|HTTP status 301|Received redirect without LOCATION",
        "the bucket lies in another region",
        "set AWS_REGION to the bucket's region",
    ),
    _Known(
        r"[Nn]o credentials|CredentialsNotLoaded|credential provider|failed to load .*credentials|"
        r"169\.254\.169\.254|CredentialsError|NoAuthWithAWS",
        "no credentials were found",
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or run under a role",
    ),
    _Known(
        r"QuotaExceeded|InsufficientStorage|507 |no space left|No writable volumes",
        "the store has no room left",
        "make room or raise the quota, and run again",
    ),
    _Known(
        r"AccessDenied|ACCESS_DENIED|403 Forbidden|HTTP status 403|privileges to complete|"
        r"Status Code: 403",
        "the credentials may not {do} there",
        "grant GetObject, PutObject, DeleteObject and ListBucket for the lake, and GetObject and "
        "ListBucket for the landing folder",
    ),
)
_PASSING = re.compile(
    r"error sending request|ServerBusy|"
    r"CURL error|(?<=Status\()(?:UNAVAILABLE|INTERNAL|DEADLINE_EXCEEDED)|"
    r"Fail to get a new connection|"
    r"[Cc]onnection (?:refused|reset|closed)|SlowDown|SLOW_DOWN|"
    r"503 Service|50[0234] |InternalError|INTERNAL_FAILURE|INTERNAL_ERROR|SERVICE_UNAVAILABLE|"
    r"NETWORK_CONNECTION|REQUEST_TIMEOUT|operation timed out|curlCode|error decoding response body|"
    r"body from connection|HTTP error: request or response body|end of file before message length|"
    r"UNKNOWN.*HTTP status 5\d\d|Status Code: 50\d|Unable to execute HTTP request",
    re.IGNORECASE,
)


def store_fault(error: BaseException) -> SluiceError | None:
    """Return what is wrong and what to do; None if no store or full disk caused the error."""
    if isinstance(error, SluiceError):
        return None
    text, cause = str(error), error.__cause__
    while cause is not None:
        text, cause = f"{text}\n{cause}", cause.__cause__
    if _OF_A_DISK in text or not _OF_STORE.search(text):
        hint = "nothing is lost; make room where the lake and temporary files lie, and run again"
        return Retryable("a disk has no room left", hint=hint) if _FULL.search(text) else None
    at = _place(text)
    for known in _LASTING:
        if re.search(known.words, text):
            what = known.what.format(do=_doing(text))
            return StoreRefused(f"{at}: {what}", hint=f"this table is unchanged; {known.hint}")
    if found := _PASSING.search(text):
        hint = "nothing is lost; run again when it does"
        full = "; some stores also answer like this if a quota is full" if _writes(text) else ""
        return Retryable(
            f"{at}: the store does not answer as it should ({found[0].strip()})", hint=hint + full
        )
    return None


def _place(text: str) -> str:
    if _AZURE.search(text):
        return "the store on Azure"
    if _GOOGLE.search(text):
        return "the store on Google Cloud"
    found = _PLACE.search(text)
    return f"bucket {next(filter(None, found.groups()))!r}" if found else "the object store"


def _writes(text: str) -> bool:
    found = _METHOD.search(text)
    is_asked = bool(found and found[1])
    return is_asked or re.search(r"PutObject|MultipartUpload|DeleteObject", text) is not None


def _doing(text: str) -> str:
    """Return the request's purpose, if its text shows it."""
    found = _METHOD.search(text)
    if found and found[2] == "list":
        return "list"
    if _writes(text):
        return "write"
    is_list = "ListObjects" in text or "list-type=2" in text
    return "list" if is_list else "read"
