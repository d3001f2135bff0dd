"""Airflow's LocalExecutor, with the work of starting a task done before it forks its workers.

A task of the LocalExecutor is a fork of a worker, which is a fork of the scheduler; what these have
not imported, every task imports anew. Sluice's imports take longer than all else that Airflow does
for a short task, and those of a Spark Connect client longer still. Nothing else differs: use it
where LocalExecutor is used.
"""

import runpy
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from airflow.executors.local_executor import LocalExecutor

from sluice.errors import SluiceError
from sluice.orchestration.projects import airflows_config, project

TASK = (
    "sluice.orchestration.dag_factory",
    "sluice.orchestration.pending",
    "sluice.reporting.publish",
)
CLIENT = "pyspark.sql.connect.session"


class WarmLocalExecutor(LocalExecutor):  # type: ignore[misc]
    """Runs tasks on this machine, each in a fork that has little left to import."""

    def start(self) -> None:
        """Imports, reads the configuration, then starts the workers."""
        for module in TASK:
            import_module(module)
        config = airflows_config()
        with suppress(SluiceError):
            if project(config).spark.engine == "connect":
                import_module(CLIENT)
                _import_jobs(config.parent / "jobs")
        super().start()


def _import_jobs(folder: Path) -> None:
    """What the jobs import, without doing anything."""
    for script in folder.glob("*.py"):
        runpy.run_path(str(script), run_name="imported")
