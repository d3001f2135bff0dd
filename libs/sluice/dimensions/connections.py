"""Address and credentials of a database, read only from the environment.

A dimension names a connection. `AIRFLOW_CONN_<ID>` holds it, as a URI or as JSON, in the form that
Airflow reads as well. A DAG's task puts Airflow's own connection there for its job.
"""

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from sluice.errors import UsageError

VARIABLE = "AIRFLOW_CONN_{}"
KINDS = {"postgres": "postgresql"}  # Airflow's names with another spelling in JDBC
PORTS = {"postgresql": 5432}


def jdbc_options(
    connection: str, table: str, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return Spark's options `url`, `user` and `password`.

    Raises UsageError, which never shows the connection's content.
    """
    name = VARIABLE.format(connection.upper())
    text = environ.get(name, "")
    if not text:
        raise UsageError(
            f"{table}: there is no connection {connection!r}",
            hint=f"set {name} to postgresql://user:password@host:port/database, or make the "
            "connection in Airflow",
        )
    try:
        parts = _of_json(json.loads(text)) if text.lstrip().startswith("{") else _of_uri(text)
    except (ValueError, TypeError, AttributeError):
        raise UsageError(
            f"{table}: {name} is not a connection", hint="write a URI or JSON, as in Airflow"
        ) from None
    kind = KINDS.get(parts["kind"], parts["kind"])
    host = f"{parts['host']}:{parts['port'] or PORTS.get(kind, '')}".rstrip(":")
    url = f"jdbc:{kind}://{host}/{parts['database']}"
    known = {"url": url, "user": parts["user"], "password": parts["password"]}
    return {key: value for key, value in known.items() if value}


def _of_uri(uri: str) -> dict[str, str]:
    parts = urlsplit(uri)
    if not parts.scheme or not parts.hostname:
        raise ValueError
    return {
        "kind": parts.scheme,
        "host": unquote(parts.hostname),
        "port": str(parts.port or ""),
        "database": unquote(parts.path.lstrip("/")),
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
    }


def _of_json(fields: Mapping[str, Any]) -> dict[str, str]:
    names = {"kind": "conn_type", "database": "schema", "user": "login"}
    keys = ("kind", "host", "port", "database", "user", "password")
    return {key: str(fields.get(names.get(key, key)) or "") for key in keys}
