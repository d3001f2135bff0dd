"""Keys of a role on S3, issued for a limited time by a token service for the machine's own token.

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
from urllib.request import urlopen

from sluice.errors import Retryable, StoreRefused

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
        ends, keys = _asked(role)
        _held[role] = (time.time() + ends) / 2, keys
    return keys


def role_of_profile(environ: Mapping[str, str]) -> str:
    """Return the chosen profile if its keys are those of a role that it names; else ''.

    Keys in variables come first. They are read last, because a loaded project stays valid only
    while all variables that were read stay the same.
    """
    name = environ.get("AWS_PROFILE") or "default"
    takes_role = any(map(_takes_role, _sections(name, environ)))
    return name if takes_role and not environ.get("AWS_ACCESS_KEY_ID") else ""


def _sections(profile: str, environ: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Yield the settings of a profile from the files."""
    for variable, usual, begin in PROFILES:
        file = Path(environ.get(variable) or usual).expanduser()
        known = ConfigParser(interpolation=None, strict=False)
        with suppress(Error, OSError, UnicodeDecodeError):
            known.read(file, encoding="utf-8")
        yield from (known[name] for name in {profile, f"{begin}{profile}"} if name in known)


def _takes_role(section: Mapping[str, str]) -> bool:
    """True if a profile's section names a role that pyarrow does not take."""
    return "role_arn" in section and "web_identity_token_file" not in section


def _role(environ: Mapping[str, str]) -> _Role | None:
    server = next((environ[name] for name in SERVERS if environ.get(name)), "")
    arn, token = (environ.get(f"AWS_{n}", "") for n in ("ROLE_ARN", "WEB_IDENTITY_TOKEN_FILE"))
    comes_first = environ.get("AWS_ACCESS_KEY_ID") or environ.get("AWS_PROFILE")
    if comes_first or not (server and arn and token):
        return None
    return _Role(server, arn, token, environ.get("AWS_ROLE_SESSION_NAME") or "sluice")


def _asked(role: _Role) -> tuple[float, Credentials]:
    """Return fresh keys of a role, and when they end, in seconds since 1970."""
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
    """Return the text of an element of the service's answer; '' if there is none."""
    found = re.search(rf"<{name}>([^<]*)</{name}>", answer)
    return found[1] if found else ""
