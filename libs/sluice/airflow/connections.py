"""Airflow's connections, passed to jobs in their environment, where jobs look for them.

They are never arguments or settings: those are logged, an environment is not.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

if TYPE_CHECKING:
    from sluice.declare.project import Project


def export(project: "Project", tables: Iterable[str]) -> None:
    """Export the connections that these tables name to this process and its children.

    A connection that Airflow lacks is left to the job, which reports what is missing.
    """
    named = (project.graph.tables[name].spec.connections for name in tables)
    for name in {name for names in named for name in names}:
        try:
            os.environ[f"AIRFLOW_CONN_{name.upper()}"] = Connection.get(name).as_json()
        except AirflowNotFoundException:
            continue
