"""Access to the server: tokens, each of which may be limited to some pipelines.

Without tokens, everybody who reaches the server sees every pipeline. So it then listens on the
loopback interface alone, and answers only requests that name this machine: a page of another site
can send a browser here under its own name.
"""

import hmac
import os
import re
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from sluice.errors import UsageError
from sluice.serve.answers import Refused

VARIABLE = "SLUICE_SERVE_TOKENS"
SHORTEST = 16  # characters of a token
HOW = "send `Authorization: Bearer TOKEN`; in a browser, the token is the password"
LINE = f"a line is TOKEN, or TOKEN and pipelines: `TOKEN shop,news`; {SHORTEST} characters or more"
COMMENT = re.compile(r"(?:^|\s)#.*")
NAMES = re.compile(r"[a-z]\w*(?:\s*,\s*[a-z]\w*)*", re.ASCII)


@dataclass(frozen=True)
class Token:
    """A token by its hash; `pipelines` are those that it may see, None means all."""

    digest: bytes
    pipelines: frozenset[str] | None

    def sees(self, pipeline: str) -> bool:
        return self.pipelines is None or pipeline in self.pipelines


EVERYTHING, NOBODY = Token(b"", None), Token(b"", frozenset())


@dataclass(frozen=True)
class Access:
    """Tokens that there are, and what a request with one may see."""

    tokens: tuple[Token, ...] = ()

    @classmethod
    def read(cls, file: str | None, environ: Mapping[str, str] = os.environ) -> "Access":
        """Return the tokens of a file, or those of the environment. UsageError names a bad line."""
        place = file or VARIABLE
        try:
            text = Path(file).read_text("utf-8") if file else environ.get(VARIABLE, "")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the tokens can't be read: {error}", hint=LINE) from None
        found = dict[bytes, Token]()
        for number, line in enumerate(text.splitlines(), 1):
            words = COMMENT.sub("", line).split(maxsplit=1)
            if not words:
                continue
            token, names = words[0], words[1].strip() if len(words) > 1 else None
            if len(token) < SHORTEST or not (names is None or NAMES.fullmatch(names)):
                raise UsageError(f"{place}:{number}: this is no token", hint=LINE)
            if (digest := _digest(token)) in found:
                raise UsageError(f"{place}:{number}: this token is there already", hint=LINE)
            pipelines = None if names is None else frozenset(re.split(r"\s*,\s*", names))
            found[digest] = Token(digest, pipelines)
        if file and not found:
            raise UsageError(f"{file} has no token", hint=LINE)
        return cls(tuple(found.values()))

    @property
    def named(self) -> frozenset[str]:
        """Pipelines that tokens are limited to."""
        return frozenset().union(*(token.pipelines or () for token in self.tokens))

    def check_host(self, host: str) -> None:
        """Raise UsageError if the server would listen to other machines without a token."""
        if not self.tokens and not _is_loopback(host):
            raise UsageError(
                f"without a token, the server does not listen on {host}: other machines reach it",
                hint=f"give --tokens FILE or {VARIABLE}; {LINE}",
            )

    def admit(self, headers: Mapping[str, str]) -> Token:
        """Return the token of a request. Raises Refused without a valid one."""
        if not self.tokens:
            if not _names_loopback(headers.get("host", "")):
                why = "this server answers only requests to localhost"
                hint = "name it `localhost` and its port; with tokens, it answers to other names"
                raise Refused(HTTPStatus.MISDIRECTED_REQUEST, why, hint)
            return EVERYTHING
        given, admitted = _digest(_token(headers.get("authorization", ""))), None
        for token in self.tokens:  # all of them, so the time shows nothing
            if hmac.compare_digest(token.digest, given):
                admitted = token
        if admitted is None:
            headers = {"WWW-Authenticate": 'Basic realm="Sluice"'}
            raise Refused(HTTPStatus.UNAUTHORIZED, "a valid token is needed", HOW, headers)
        return admitted


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="surrogateescape")).digest()


def _token(header: str) -> str:
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        return rest.strip() if scheme.lower() == "bearer" else ""
    try:
        return b64decode(rest, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _names_loopback(header: str) -> bool:
    with suppress(ValueError):
        return _is_loopback((urlsplit(f"//{header}").hostname or "").removesuffix("."))
    return False


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
