"""Connections to databases, brokers and registries, read only from the environment.

A declaration names a connection. `AIRFLOW_CONN_<ID>` holds it, as a URI or as JSON, in the form
that Airflow reads as well. A DAG's task puts Airflow's own connection there for its job.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from sluice.errors import UsageError

VARIABLE = "AIRFLOW_CONN_{}"


@dataclass(frozen=True)
class Connection:
    """A connection; what it lacks is ''. `schema`: of JSON alone; `path`: of a URI alone."""

    kind: str
    host: str
    port: str
    login: str = field(repr=False)
    password: str = field(repr=False)
    schema: str = ""
    path: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


def read_connection(name: str, table: str, environ: Mapping[str, str], example: str) -> Connection:
    """Return the connection of that name, which a table needs.

    `example`: a value of its variable, for the hint. Raises UsageError, which never shows the
    connection's content.
    """
    variable = VARIABLE.format(name.upper())
    hint = f"set {variable} to {example}"
    text = environ.get(variable, "").strip()
    if not text:
        raise UsageError(
            f"{table}: there is no connection {name!r}",
            hint=f"{hint}; or make the connection in Airflow",
        )
    try:
        return _of_json(json.loads(text)) if text.startswith("{") else _of_uri(text)
    except (ValueError, TypeError, AttributeError):
        raise UsageError(f"{table}: {variable} is not a connection", hint=hint) from None


def _of_json(fields: Mapping[str, Any]) -> Connection:
    extra = fields.get("extra") or {}
    extra = dict(json.loads(extra) if isinstance(extra, str) else extra)
    names = ("conn_type", "host", "port", "login", "password", "schema")
    kind, host, port, login, password, schema = (str(fields.get(name) or "") for name in names)
    return Connection(kind, host, port, login, password, schema, extra=extra)


def _of_uri(uri: str) -> Connection:
    parts = urlsplit(uri)
    if not parts.scheme:
        raise ValueError
    extra = dict(parse_qsl(parts.query))
    return Connection(
        kind=parts.scheme,
        host=unquote(parts.hostname or ""),
        port=str(parts.port or ""),
        login=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        path=parts.path,
        extra=json.loads(extra["__extra__"]) if "__extra__" in extra else extra,
    )
