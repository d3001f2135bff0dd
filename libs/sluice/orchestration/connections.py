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
    from sluice.specs.dimension import Dimension  # a DAG file does without

    specs = (project.graph.tables[name].spec for name in tables)
    for name in {s.connection for s in specs if isinstance(s, Dimension) and s.connection}:
        try:
            os.environ[f"AIRFLOW_CONN_{name.upper()}"] = Connection.get(name).as_json()
        except AirflowNotFoundException:
            continue
