"""Airflow's connections, handed to jobs by their environment, which is where jobs look for them.

Never as an argument or a setting: those are logged, an environment is not.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

if TYPE_CHECKING:
    from sluice.specs.project import Project


def export(project: "Project", tables: Iterable[str]) -> None:
    """Put the connections that these tables name where this process and its children find them.

    One that Airflow does not have is left to the job, which says what is missing.
    """
    named = (project.graph.tables[name].spec.connections for name in tables)
    for name in {name for names in named for name in names}:
        try:
            os.environ[f"AIRFLOW_CONN_{name.upper()}"] = Connection.get(name).as_json()
        except AirflowNotFoundException:
            continue
