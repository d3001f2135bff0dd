"""A store's server and credentials, from Airflow's connection to the variables of its clients."""

from collections.abc import Mapping

from airflow.sdk import Connection

from sluice.errors import UsageError

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
        to: str(given[name]) for name, to in _known(connection, extra).items() if given.get(name)
    }


def _known(connection: Connection, extra: Mapping[str, object]) -> Mapping[str, str]:
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
