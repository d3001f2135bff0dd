"""Airflow's own hook for settings in Python: a metadata database in SQLite that bears a backfill.

Airflow asked for a backfill looks inside a savepoint whether a day's run exists, then inserts it.
SQLite opens a savepoint as a reader and refuses, at once, to make a writer of it if anybody wrote
in between: the request fails with "database is locked", and the runs made so far are deleted under
the scheduler, which dies of that. So a savepoint takes the write lock first, and waits for it.
"""

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

__all__ = ["create_metadata_engine"]

PATIENCE = 30


def create_metadata_engine(
    sql_alchemy_conn: str, *, engine_args: dict[str, Any], connect_args: dict[str, Any]
) -> Engine:
    """Airflow's engine; with SQLite, one whose writers wait for each other."""
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
