"""Airflow's connections, passed to jobs in their environment, where jobs look for them.

They are never arguments or settings: those are logged, an environment is not.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from airflow.sdk import Connection

from sluice.airflow.exceptions import AirflowNotFoundException
from sluice.errors import UsageError

if TYPE_CHECKING:
    from sluice.declare.project import Project

# By type of connection: fields and extras, and the variable for each.
AWS = {
    "login": "AWS_ACCESS_KEY_ID",
    "password": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "region_name": "AWS_REGION",
    "endpoint_url": "AWS_ENDPOINT_URL",
    "profile_name": "AWS_PROFILE",
}
AZURE = {
    "login": "AZURE_STORAGE_ACCOUNT_NAME",
    "password": "AZURE_STORAGE_ACCOUNT_KEY",
    "sas_token": "AZURE_STORAGE_SAS_TOKEN",
}
PRINCIPAL = {
    "login": "AZURE_CLIENT_ID",
    "password": "AZURE_CLIENT_SECRET",
    "tenant_id": "AZURE_TENANT_ID",
}
GOOGLE = {"key_path": "GOOGLE_APPLICATION_CREDENTIALS"}
UNKNOWN = (  # extras
    *("role_arn", "connection_string", "managed_identity_client_id", "keyfile_dict"),
    *("key_secret_name", "credential_config_file", "impersonation_chain"),
)


def variables(connection: Connection) -> dict[str, str]:
    """Return the variables for a connection to a store, as its providers fill it in.

    Raises UsageError for another type, and for a login that no variable can express.
    """
    extra = connection.extra_dejson
    if named := [name for name in UNKNOWN if extra.get(name)]:
        raise UsageError(
            f"lake_connection: {connection.conn_id} has `{named[0]}`, which Sluice does not follow",
            hint="write keys, a token or `key_path` there, or give the role to Airflow's workers",
        )
    given = {**extra, "login": connection.login, "password": connection.password}
    return {
        to: str(given[name])
        for name, to in _translate_known(connection, extra).items()
        if given.get(name)
    }


def _translate_known(connection: Connection, extra: Mapping[str, object]) -> Mapping[str, str]:
    if connection.conn_type == "aws":
        return AWS
    if connection.conn_type in ("wasb", "adls"):
        return PRINCIPAL if extra.get("tenant_id") else AZURE
    if connection.conn_type == "google_cloud_platform":
        return GOOGLE
    raise UsageError(
        f"lake_connection: {connection.conn_id} is of type {connection.conn_type!r}",
        hint="its type is aws for S3, wasb for Azure, or google_cloud_platform for Google",
    )


VARIABLE = "AIRFLOW_CONN_"
LENDING = Lock()


def export(project: "Project", tables: Iterable[str]) -> None:
    """Export the connections that these tables name to this process and its children.

    A connection that Airflow lacks is left to the job, which reports what is missing.
    """
    os.environ.update(_of_tables(project, tables))


def export_lake(project: "Project") -> None:
    """Export the lake's connection likewise. Raises UsageError if no variable can express it."""
    os.environ.update(_of_lake(project))


def environ(project: "Project") -> dict[str, str]:
    """Return this process's environment with the lake's connection, for another process."""
    return {**os.environ, **_of_lake(project)}


@contextmanager
def lent(project: "Project", tables: Iterable[str]) -> Iterator[None]:
    """Export the connections to a running process, and remove them at the end.

    Airflow looks into the environment first, so a copy that stayed would hide later edits. One
    caller has them at a time.
    """
    names = set(tables)
    if not _connection_names(project, names) and not project.lake_connection:
        yield
        return
    with LENDING:
        lent_now = {**_of_lake(project), **_of_tables(project, names)}
        own = {name: os.environ.get(name) for name in lent_now}
        os.environ.update(lent_now)
        try:
            yield
        finally:
            for name, text in own.items():
                os.environ.pop(name, None)
                os.environ.update({name: text} if text else {})


def _of_lake(project: "Project") -> dict[str, str]:
    found = _connection(project.lake_connection)
    return variables(found) if found else {}


def _of_tables(project: "Project", tables: Iterable[str]) -> dict[str, str]:
    found = {name: _connection(name) for name in _connection_names(project, tables)}
    return {f"{VARIABLE}{n.upper()}": one.as_json() for n, one in found.items() if one}


def _connection(name: str) -> Connection | None:
    try:
        return Connection.get(name) if name else None
    except AirflowNotFoundException:
        return None


def _connection_names(project: "Project", tables: Iterable[str]) -> set[str]:
    found = (project.graph.tables[name].spec.connections for name in tables)
    return {name for names in found for name in names}
