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

if TYPE_CHECKING:
    from sluice.declare.project import Project

VARIABLE = "AIRFLOW_CONN_"
LENDING = Lock()


def export(project: "Project", tables: Iterable[str]) -> None:
    """Export the connections that these tables name to this process and its children.

    A connection that Airflow lacks is left to the job, which reports what is missing.
    """
    for name in _named(project, tables):
        try:
            os.environ[_variable(name)] = Connection.get(name).as_json()
        except AirflowNotFoundException:
            continue


@contextmanager
def lent(project: "Project", tables: Iterable[str]) -> Iterator[None]:
    """Export the connections to a process that goes on, and take them back in the end.

    Airflow looks into the environment first, so a copy that stayed would hide later edits. One
    caller has them at a time.
    """
    names = _named(project, tables)
    if not names:
        yield
        return
    with LENDING:
        own = {_variable(name): os.environ.get(_variable(name)) for name in names}
        export(project, tables)
        try:
            yield
        finally:
            for name, text in own.items():
                os.environ.pop(name, None)
                os.environ.update({name: text} if text else {})


def _named(project: "Project", tables: Iterable[str]) -> set[str]:
    found = (project.graph.tables[name].spec.connections for name in tables)
    return {name for names in found for name in names}


def _variable(name: str) -> str:
    return f"{VARIABLE}{name.upper()}"
