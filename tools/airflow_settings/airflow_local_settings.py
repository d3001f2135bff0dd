"""Airflow's hook for settings in Python: makes a metadata database in SQLite survive a backfill.

For a backfill, Airflow checks inside a savepoint whether a day's run exists, then inserts it.
SQLite opens a savepoint as a reader, and refuses to upgrade it if anybody wrote in between. The
request then fails with "database is locked", and Airflow deletes the runs created so far, which
crashes the scheduler. So a savepoint takes the write lock first, and waits for it.
"""

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

__all__ = ["create_metadata_engine"]

PATIENCE = 30


def create_metadata_engine(
    sql_alchemy_conn: str, *, engine_args: dict[str, Any], connect_args: dict[str, Any]
) -> Engine:
    """Return Airflow's engine; with SQLite, one whose writers wait for each other."""
    if sql_alchemy_conn.startswith("sqlite"):
        connect_args = {"timeout": PATIENCE, **connect_args}
    engine = create_engine(sql_alchemy_conn, connect_args=connect_args, **engine_args)
    if sql_alchemy_conn.startswith("sqlite"):
        event.listen(engine, "savepoint", _begin_as_writer)
    return engine


def _begin_as_writer(connection: Connection, name: str | None) -> None:  # noqa: ARG001
    raw: Any = connection.connection.dbapi_connection
    if not raw.in_transaction:
        raw.execute("BEGIN IMMEDIATE")
