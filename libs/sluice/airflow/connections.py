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


def export(project: "Project", tables: Iterable[str] = ()) -> None:
    """Export the connections of these tables and of the lake to this process and its children.

    A connection that Airflow lacks is left to the job, which reports what is missing.
    """
    os.environ.update(_variables(project, tables))


def environ(project: "Project") -> dict[str, str]:
    """Return this process's environment with the lake's connection, for another process."""
    return {**os.environ, **_variables(project, ())}


@contextmanager
def lent(project: "Project", tables: Iterable[str]) -> Iterator[None]:
    """Export the connections to a process that goes on, and take them back in the end.

    Airflow looks into the environment first, so a copy that stayed would hide later edits. One
    caller has them at a time.
    """
    names = set(tables)
    if not _named(project, names) and not project.lake_connection:
        yield
        return
    with LENDING:
        lent_now = _variables(project, names)
        own = {name: os.environ.get(name) for name in lent_now}
        os.environ.update(lent_now)
        try:
            yield
        finally:
            for name, text in own.items():
                os.environ.pop(name, None)
                os.environ.update({name: text} if text else {})


def _variables(project: "Project", tables: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if lake := _connection(project.lake_connection):
        found |= variables(lake)
    for name in _named(project, tables):
        if connection := _connection(name):
            found[f"{VARIABLE}{name.upper()}"] = connection.as_json()
    return found


def _connection(name: str) -> Connection | None:
    try:
        return Connection.get(name) if name else None
    except AirflowNotFoundException:
        return None


def _named(project: "Project", tables: Iterable[str]) -> set[str]:
    found = (project.graph.tables[name].spec.connections for name in tables)
    return {name for names in found for name in names}
