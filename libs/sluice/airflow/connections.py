"""Airflow's connections, passed to jobs in their environment, where jobs look for them.

They are never arguments or settings: those are logged, an environment is not.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from sluice.airflow.store import variables

if TYPE_CHECKING:
    from sluice.declare.project import Project

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
    if not _named(project, names) and not project.lake_connection:
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
    found = {name: _connection(name) for name in _named(project, tables)}
    return {f"{VARIABLE}{n.upper()}": one.as_json() for n, one in found.items() if one}


def _connection(name: str) -> Connection | None:
    try:
        return Connection.get(name) if name else None
    except AirflowNotFoundException:
        return None


def _named(project: "Project", tables: Iterable[str]) -> set[str]:
    found = (project.graph.tables[name].spec.connections for name in tables)
    return {name for names in found for name in names}
