"""Kinds of stores, and what several committers of one table need in each.

A commit of Delta creates the file of the next version. Two committers are safe only if both create
it by an operation that fails if the file exists. This must hold in every process and on every
machine. Options select it for delta-rs, and settings for Spark, because the default of Delta's jar
for S3 is a lock within one JVM. Where this is not tested, Spark computes, and delta-rs reads and
commits.

Keys of a role on S3 are issued for a limited time by a token service, for the machine's own token.
delta-rs and Spark request them themselves. pyarrow can only use Amazon's service, so its keys are
fetched here if another one is configured. They are held in memory, and renewed after half of their
lifetime. pyarrow never takes a role that a profile names by `role_arn`.
"""

import os
import re
import time
from collections.abc import Iterator, Mapping
from configparser import ConfigParser, Error
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode

from sluice.errors import Retryable, StoreRefused

OF_OBSTORE = ("access_key_id", "secret_access_key", "session_token")  # its names of keys
SERVERS = ("AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL")
ANSWER_S = 20
# Files of profiles: the variable, the place without it, and how a profile's section begins.
PROFILES = (
    ("AWS_CONFIG_FILE", "~/.aws/config", "profile "),
    ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", ""),
)


@dataclass(frozen=True)
class Credentials:
    """Keys with which requests are signed, and the token that goes with them."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(repr=False)


@dataclass(frozen=True)
class _Role:
    """A role, the service that issues its keys, and the file with the machine's token."""

    server: str
    arn: str
    token: str
    session: str


_held: dict[_Role, tuple[float, Credentials]] = {}


def keys_of_role(environ: Mapping[str, str] = os.environ) -> Credentials | None:
    """Return keys for the role in the environment; None if it has no role, or has keys.

    Raises StoreRefused if the service refuses them, Retryable if it does not answer.
    """
    role = _role(environ)
    if role is None:
        return None
    renewed_at, keys = _held.get(role, (0.0, None))
    if keys is None or time.time() >= renewed_at:
        ends, keys = _request_keys(role)
        _held[role] = (time.time() + ends) / 2, keys
    return keys


def role_of_profile(environ: Mapping[str, str]) -> str:
    """Return the chosen profile if its keys are those of a role that it names; else ''.

    Keys in variables come first. They are read last, because a loaded project stays valid only
    while all variables that were read stay the same.
    """
    name = environ.get("AWS_PROFILE") or "default"
    takes_role = any(  # pyarrow takes one only by a file with a token
        "role_arn" in section and "web_identity_token_file" not in section
        for section in _sections(name, environ)
    )
    return name if takes_role and not environ.get("AWS_ACCESS_KEY_ID") else ""


def keys_of_environ(environ: Mapping[str, str] = os.environ) -> Mapping[str, str] | None:
    """Return S3's keys that the environment names, by their names in obstore; None if only a
    provider's own client finds them.

    They are empty if obstore itself finds them: in variables, or from the machine's own service.
    """
    if environ.get("AWS_ACCESS_KEY_ID"):
        return {}
    if keys := keys_of_role(environ):
        return dict(
            zip(OF_OBSTORE, (keys.access_key, keys.secret_key, keys.session_token), strict=True)
        )
    named = environ.get("AWS_PROFILE", "")
    sections = _sections(named or "default", environ)
    known = {name: value for section in sections for name, value in section.items()}
    found = {name: known[f"aws_{name}"] for name in OF_OBSTORE if f"aws_{name}" in known}
    if "access_key_id" in found:
        return found
    return None if named or known.keys() - {"region", "output"} else {}


def _sections(profile: str, environ: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Yield the settings of a profile from the files."""
    for variable, usual, begin in PROFILES:
        file = Path(environ.get(variable) or usual).expanduser()
        known = ConfigParser(interpolation=None, strict=False)
        with suppress(Error, OSError, UnicodeDecodeError):
            known.read(file, encoding="utf-8")
        yield from (known[name] for name in {profile, f"{begin}{profile}"} if name in known)


def _role(environ: Mapping[str, str]) -> _Role | None:
    server = next((environ[name] for name in SERVERS if environ.get(name)), "")
    arn, token = (environ.get(f"AWS_{n}", "") for n in ("ROLE_ARN", "WEB_IDENTITY_TOKEN_FILE"))
    comes_first = environ.get("AWS_ACCESS_KEY_ID") or environ.get("AWS_PROFILE")
    if comes_first or not (server and arn and token):
        return None
    return _Role(server, arn, token, environ.get("AWS_ROLE_SESSION_NAME") or "sluice")


def _request_keys(role: _Role) -> tuple[float, Credentials]:
    """Return fresh keys of a role, and when they end, in seconds since 1970."""
    from urllib.request import urlopen

    try:
        asked = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": role.arn,
            "RoleSessionName": role.session,
            "WebIdentityToken": Path(role.token).read_text("utf-8").strip(),
        }
        with urlopen(role.server, urlencode(asked).encode(), timeout=ANSWER_S) as answer:
            said = answer.read().decode()
    except HTTPError as error:
        raise _refusal(role, error) from None
    except OSError as error:
        if error.filename == role.token:
            raise StoreRefused(
                f"AWS_WEB_IDENTITY_TOKEN_FILE can't be read: {error.strerror}: {role.token}",
                hint="nothing was committed; does the pod or the machine have its token there?",
            ) from None
        raise Retryable(
            f"the token service at {role.server} does not answer: {error}",
            hint="nothing is lost; run again when it does, or correct AWS_ENDPOINT_URL_STS",
        ) from None
    ends = datetime.fromisoformat(_in(said, "Expiration")).timestamp()
    return ends, Credentials(
        *(_in(said, n) for n in ("AccessKeyId", "SecretAccessKey", "SessionToken"))
    )


def _refusal(role: _Role, error: HTTPError) -> StoreRefused | Retryable:
    said = _in(error.read().decode(errors="replace"), "Message") or str(error.reason)
    message = f"the token service at {role.server} refuses keys for {role.arn}: {said}"
    if error.code >= 500:
        return Retryable(message, hint="nothing is lost; run again")
    return StoreRefused(
        message, hint="nothing was committed; correct AWS_ROLE_ARN, or the role's trust policy"
    )


def _in(answer: str, name: str) -> str:
    found = re.search(rf"<{name}>([^<]*)</{name}>", answer)
    return found[1] if found else ""


UNSAFE = ("AWS_S3_ALLOW_UNSAFE_RENAME", "AWS_S3_LOCKING_PROVIDER")
SettingFault = tuple[tuple[str, ...], str]
OFF = ("", "0", "false", "no", "off")
_NO_PLACE = re.compile(r"^$|^/|//|(?<=/)\.{1,2}(?=/|$)")
_ALTERED = re.compile(r"[?#\\\x00-\x1f]|%[0-9A-Fa-f]{2}")


@dataclass(frozen=True)
class Store:
    """One kind of store. `exclusive`: the operation that lets only one commit of a version succeed.

    `options`, `conf`: those by which delta-rs and Spark are asked for it. `unsafe`: variables that
    would end it. `why_not_spark`: why Spark has no access.
    """

    name: str
    schemes: tuple[str, ...]
    exclusive: str
    options: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    unsafe: tuple[str, ...] = ()
    why_not_spark: str = ""

    @property
    def takes_spark(self) -> bool:
        """True if Spark itself may read and write tables there."""
        return not self.why_not_spark


S3 = Store(
    "S3",
    ("s3", "s3a"),
    "PUT with If-None-Match: *",
    # With an endpoint, delta-rs uses profiles and roles only with this setting.
    # A bucket with object lock accepts no object without a checksum.
    {
        "conditional_put": "etag",
        "aws_force_credential_load": "true",
        "aws_checksum_algorithm": "sha256",
    },
    {
        "spark.delta.logStore.s3.impl": "sluice.storage.ConditionalLogStore",
        "spark.delta.logStore.s3a.impl": "sluice.storage.ConditionalLogStore",
    },
    UNSAFE,
)
GOOGLE = Store(
    "Google Cloud Storage",
    ("gs",),
    "a write with ifGenerationMatch=0",
    why_not_spark="its connector to Google Cloud Storage is not tested with Sluice",
)
GOOGLE_KEYS = (
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
)
AZURE = Store(
    "Azure",
    ("abfs", "abfss"),
    "PUT with If-None-Match: *",
    why_not_spark="its connector to Azure is not tested with Sluice",
)
AZURE_PLACE = "abfss://container@account.dfs.core.windows.net/folder"
STORES = (
    Store("a disk", ("", "file"), "a link or rename that replaces nothing"),
    S3,
    AZURE,
    GOOGLE,
)
SCHEMES = {scheme: store for store in STORES for scheme in store.schemes}


def scheme_of(uri: str) -> str:
    """Return the scheme of a URI; an empty text for a path."""
    return uri.partition("://")[0].lower() if "://" in uri else ""


def store_of(uri: str) -> Store | None:
    """Return the kind of store that a URI names; None for one that is unknown."""
    return SCHEMES.get(scheme_of(uri))


def takes_spark(uri: str) -> bool:
    """True if Spark itself may read and write the table at a URI."""
    store = store_of(uri)
    return store is None or store.takes_spark


def explain_misplaced(uri: str, *, is_delta: bool) -> str:
    """Return why no client finds a place in a store, or only some do; '' if all do.

    `is_delta`: there is a table or a lake, whose place delta-rs reads as a web address.
    """
    path = uri.partition("://")[2].rstrip("/")
    if scheme_of(uri) in ("", "file"):
        return ""
    if found := _NO_PLACE.search(path):
        what = (
            f"{found[0]!r} is not allowed in a name in a store" if path else "it has no bucket name"
        )
        return f"{uri}: {what}; write {scheme_of(uri)}://bucket/folder"
    if store_of(uri) is AZURE and not re.match(r"[^/@]+@[^/@.]+", path):
        return f"{uri}: no account is named; write {AZURE_PLACE}"
    if is_delta and (found := _ALTERED.search(path)):
        return f"{uri}: {found[0]!r} would point to another place; use a name without it"
    return ""


def faults(lake: str, committer: str, environ: Mapping[str, str]) -> Iterator[SettingFault]:
    """Yield what makes commits to a lake unsafe, each with the place of its setting."""
    store = store_of(lake)
    if store is None:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES if scheme)
        message = f"commits to {scheme_of(lake)}:// are not supported; write a path, or {known}"
        yield ("lake",), message
        return
    if why := explain_misplaced(lake, is_delta=True):
        yield ("lake",), why
    if committer == "spark" and not store.takes_spark:
        why = store.why_not_spark
        message = f"`spark` is not safe on {store.name}: {why}; write `delta-rs`, or nothing"
        yield ("spark", "commit"), message
    for name in store.unsafe:
        if environ.get(name, "").lower() not in OFF:
            why = "commits could overwrite each other; unset it, conditional writes don't need it"
            yield ("lake",), f"{name} is set in the environment: {why}"


def out_of_reach(lake: str, environ: Mapping[str, str]) -> Iterator[SettingFault]:
    """Yield why this process could not read files of a lake, with the place of its setting."""
    if store_of(lake) is S3 and (profile := role_of_profile(environ)):
        why = "which pyarrow does not support: set AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE"
        yield ("lake",), f"the profile {profile!r} names a role by `role_arn`, {why}, or keys"
    named = [name for name in GOOGLE_KEYS if environ.get(name)]
    if store_of(lake) is GOOGLE and named:
        why = "which pyarrow does not support: set GOOGLE_APPLICATION_CREDENTIALS instead"
        yield ("lake",), f"{named[0]} is set in the environment, {why}"
