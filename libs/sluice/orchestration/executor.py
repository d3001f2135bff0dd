"""Airflow's LocalExecutor, with the imports of the DAG files done before it forks its workers.

A task of the LocalExecutor is a fork of a worker, which is a fork of the scheduler; what these have
not imported, every task imports anew. Sluice's own imports take longer than all else that Airflow
does for a short task. Nothing else differs: use it where LocalExecutor is used.
"""

from importlib import import_module

from airflow.executors.local_executor import LocalExecutor

PREPARED = (
    "sluice.orchestration.dag_factory",
    "sluice.orchestration.pending",
    "sluice.reporting.publish",
)


class WarmLocalExecutor(LocalExecutor):  # type: ignore[misc]
    """Runs tasks on this machine, each in a fork that has nothing left to import."""

    def start(self) -> None:
        """Imports, then starts the workers."""
        for module in PREPARED:
            import_module(module)
        super().start()
