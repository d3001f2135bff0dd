"""Settings of clients, read only from the environment.

A source names a connection. `AIRFLOW_CONN_<ID>` holds it as Airflow has it. The extra fields of a
Kafka connection are the client's own settings, such as `security.protocol`. Host and port may
replace `bootstrap.servers`, login and password those of SASL.
"""

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from sluice.errors import UsageError

VARIABLE = "AIRFLOW_CONN_{}"
OURS = ("group.", "enable.auto", "auto.", "isolation.level", "enable.partition.eof")
AS_KAFKA = 'set {} to JSON: {{"conn_type": "kafka", "extra": {{"bootstrap.servers": "host:9092"}}}}'
AS_REGISTRY = "set {} to the registry's address, such as https://user:password@host:8081"


def client_settings(
    connection: str, table: str, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return a client's settings, without those that a batch decides.

    Raises UsageError, which never shows the connection's content.
    """
    name = VARIABLE.format(connection.upper())
    fields = _fields(name, table, environ, AS_KAFKA)
    given = {key: _setting(value) for key, value in fields["extra"].items()}
    known = {key: value for key, value in given.items() if not key.startswith(OURS)}
    host, port = fields["host"], fields["port"]
    own = {
        "bootstrap.servers": f"{host}:{port or 9092}" if host else "",
        "sasl.username": fields["login"],
        "sasl.password": fields["password"],
    }
    found = {**{key: value for key, value in own.items() if value}, **known}
    if "bootstrap.servers" not in found:
        raise UsageError(f"{table}: {name} names no brokers", hint=AS_KAFKA.format(name))
    return found


def registry_address(
    connection: str, table: str, environ: Mapping[str, str] = os.environ
) -> tuple[str, str, str]:
    """Return a registry's address, user and password; raise UsageError if there is none."""
    name = VARIABLE.format(connection.upper())
    fields = _fields(name, table, environ, AS_REGISTRY)
    if not fields["host"]:
        raise UsageError(f"{table}: {name} has no host", hint=AS_REGISTRY.format(name))
    scheme = fields["scheme"] if fields["scheme"] in ("http", "https") else "http"
    port = f":{fields['port']}" if fields["port"] else ""
    host = fields["host"].removeprefix("http://").removeprefix("https://")
    path = fields["path"] if scheme == fields["scheme"] else ""  # else it is Airflow's schema
    return f"{scheme}://{host}{port}{path}", fields["login"], fields["password"]


def _fields(name: str, table: str, environ: Mapping[str, str], how: str) -> dict[str, Any]:
    text = environ.get(name, "").strip()
    if not text:
        raise UsageError(
            f"{table}: there is no connection {name.removeprefix(VARIABLE.format('')).lower()!r}",
            hint=f"{how.format(name)}; or make the connection in Airflow",
        )
    try:
        return _of_json(json.loads(text)) if text.startswith("{") else _of_uri(text)
    except (ValueError, TypeError, AttributeError):
        raise UsageError(f"{table}: {name} is not a connection", hint=how.format(name)) from None


def _of_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    extra = fields.get("extra") or {}
    extra = json.loads(extra) if isinstance(extra, str) else extra
    own = {key: str(fields.get(key) or "") for key in ("host", "port", "login", "password")}
    scheme = fields.get("schema") or ("https" if own["host"].startswith("https:") else "http")
    return {**own, "extra": dict(extra), "scheme": str(scheme), "path": ""}


def _of_uri(uri: str) -> dict[str, Any]:
    parts = urlsplit(uri)
    if not parts.scheme:
        raise ValueError
    extra = dict(parse_qsl(parts.query))
    extra = json.loads(extra["__extra__"]) if "__extra__" in extra else extra
    return {
        "host": unquote(parts.hostname or ""),
        "port": str(parts.port or ""),
        "login": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "extra": extra,
        "scheme": parts.scheme,
        "path": parts.path.rstrip("/"),
    }


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
