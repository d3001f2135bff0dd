"""Settings of Kafka's clients, by the connections that a source names.

The extra fields of a Kafka connection are the client's own settings, such as `security.protocol`.
Host and port may replace `bootstrap.servers`, login and password those of SASL.
"""

import os
from collections.abc import Mapping

from sluice.declare.connections import VARIABLE, read_connection
from sluice.errors import UsageError
from sluice.sources.spec import Topic

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
