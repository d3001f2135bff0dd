"""Connections that a topic's source names: settings of Kafka's clients, and the schema registry.

Each question is asked of the registry once in a process.

The extra fields of a Kafka connection are the client's own settings, such as `security.protocol`.
Host and port may replace `bootstrap.servers`, login and password those of SASL.
"""

import base64
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sluice.declare.connections import VARIABLE, read_connection
from sluice.errors import Retryable, UsageError
from sluice.sources import Topic, ValueFormat
from sluice.sources.kafka.records import Unusable

OURS = ("group.", "enable.auto", "auto.", "isolation.level", "enable.partition.eof")
BROKERS = 'JSON: {"conn_type": "kafka", "extra": {"bootstrap.servers": "host:9092"}}'
REGISTRY = "the registry's address, such as https://user:password@host:8081"


def client_settings(
    topic: Topic, table: str, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return a client's settings, without those that a batch decides.

    Raises UsageError, which never shows the connection's content.
    """
    connection = topic.connection
    if not connection:
        return {"bootstrap.servers": topic.servers}
    found = read_connection(connection, table, environ, BROKERS)
    own = {
        "bootstrap.servers": f"{found.host}:{found.port or 9092}" if found.host else "",
        "sasl.username": found.login,
        "sasl.password": found.password,
    }
    settings = {key: value for key, value in own.items() if value}
    for key, value in found.extra.items():
        if not key.startswith(OURS):
            settings[key] = str(value).lower() if isinstance(value, bool) else str(value)
    if "bootstrap.servers" not in settings:
        name = VARIABLE.format(connection.upper())
        raise UsageError(f"{table}: {name} names no brokers", hint=f"set {name} to {BROKERS}")
    return settings


def registry_address(
    connection: str, table: str, environ: Mapping[str, str] = os.environ
) -> tuple[str, str, str]:
    """Return a registry's address, user and password; raise UsageError if there is none."""
    found = read_connection(connection, table, environ, REGISTRY)
    if not found.host:
        name = VARIABLE.format(connection.upper())
        raise UsageError(f"{table}: {name} has no host", hint=f"set {name} to {REGISTRY}")
    in_host, _, host = found.host.rpartition("://")
    stated = (found.schema, in_host, found.kind, "http")
    scheme = next(word for word in stated if word in ("http", "https"))
    port = f":{found.port}" if found.port else ""
    path = found.path.rstrip("/") if scheme == found.kind else ""  # else it is Airflow's schema
    return f"{scheme}://{host}{port}{path}", found.login, found.password


ANSWER_S = 15.0
ANY_ID = 1
MEDIA = "application/vnd.schemaregistry.v1+json"
REFUSED = (401, 403)
MOVED = (301, 302, 303, 307, 308)
Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Registry:
    """The registry that a source's connection names."""

    table: str
    connection: str
    address: str
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, value: ValueFormat, table: str) -> "Registry":
        """Return the registry. Raises UsageError without its connection. Asks nobody yet."""
        return cls(table, value.registry, *registry_address(value.registry, table))

    def schema(self, schema_id: int, query: str = "") -> Answer:
        """Return a schema with its references. Raises Unusable if there is none of that id."""
        return self.answer(f"schemas/ids/{schema_id}{query}", f"schema {schema_id}")

    def references(
        self, schema: Answer, query: str = "", seen: set[str] | None = None
    ) -> Iterator[tuple[str, str, Answer]]:
        """Yield the schemas that a schema refers to: name, words for it, and the schema.

        Each comes once, after those that it refers to itself.
        """
        seen = set() if seen is None else seen
        for reference in schema.get("references") or ():
            name, subject, version = (reference[n] for n in ("name", "subject", "version"))
            if name in seen:
                continue
            seen.add(name)
            what = f"version {version} of {subject}"
            path = f"subjects/{quote(subject, safe='')}/versions/{version}{query}"
            found = self.answer(path, what)
            yield from self.references(found, query, seen)
            yield name, what, found

    def answer(self, path: str, what: str) -> Answer:
        """Return an answer.

        Raises Unusable if the registry lacks `what`, and Retryable if it does not answer. Raises
        UsageError if there is no registry at the address, or if it refuses the login.
        """
        return _answer(self, path, what)


def check_registry(value: ValueFormat, table: str) -> None:
    """Raise Retryable if the registry does not answer, UsageError without its connection."""
    with suppress(Unusable):  # it answers that it has no such schema
        Registry.of(value, table).schema(ANY_ID)


@lru_cache(maxsize=1024)
def _answer(registry: Registry, path: str, what: str) -> Answer:
    request = Request(f"{registry.address}/{path}", headers={"Accept": MEDIA})
    if registry.user:
        secret = base64.b64encode(f"{registry.user}:{registry.password}".encode()).decode()
        request.add_header("Authorization", f"Basic {secret}")
    name = f"{registry.table}: the schema registry of the connection {registry.connection!r}"
    try:
        with OPENER.open(request, timeout=ANSWER_S) as answered:
            found: Answer = json.loads(answered.read())
    except HTTPError as refused:
        raise _refusal(refused, name, what) from refused
    except (URLError, OSError, ValueError) as unheard:
        why = getattr(unheard, "reason", unheard)
        raise Retryable(f"{name} does not answer: {why}", hint=LATER) from unheard
    return found


class _WithinHost(HTTPRedirectHandler):
    """Follow redirects within a host alone: each carries the login."""

    def redirect_request(self, req: Request, *answer: Any) -> Request | None:
        """Return the next request; None, which makes the redirect an error, for another host."""
        *_, url = answer
        if urlsplit(url)[:2] != urlsplit(req.full_url)[:2]:
            return None
        return super().redirect_request(req, *answer)


OPENER = build_opener(_WithinHost)
LATER = "earlier commits remain; the next run reads the same messages again"


def _refusal(refused: HTTPError, name: str, what: str) -> Exception:
    if refused.code == 404:
        if _is_of_registry(refused):
            return Unusable(f"the schema registry has no {what}")
        return UsageError(
            f"{name} answers 404 without an error code, so its address may be wrong",
            hint="correct the connection: its address ends before `/schemas` and `/subjects`",
        )
    if refused.code in MOVED:
        scheme, host, *_ = urlsplit(refused.headers.get("Location", ""))
        return UsageError(
            f"{name} redirects to {scheme}://{host}, which the connection does not name",
            hint="if that is the registry, correct the connection's address",
        )
    if refused.code in REFUSED:
        return UsageError(
            f"{name} refuses with {refused.code}", hint="correct the connection's login"
        )
    return Retryable(f"{name} answers with {refused.code}", hint=LATER)


def _is_of_registry(refused: HTTPError) -> bool:
    """True if a registry wrote the answer, which contains a code for the missing item."""
    try:
        return "error_code" in json.loads(refused.read())
    except (ValueError, TypeError, OSError):
        return False
