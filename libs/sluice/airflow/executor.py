"""Airflow's LocalExecutor, with a task's imports done before it forks its workers.

A task of the LocalExecutor is a fork of a worker, which is a fork of the scheduler. Modules that
they have not imported are imported again by every task. For a short task, Sluice's imports take
longer than all other work of Airflow, and those of a Spark Connect client even longer. Nothing else
differs: use it where LocalExecutor is used.
"""

import runpy
from contextlib import suppress
from importlib import import_module

from airflow.executors.local_executor import LocalExecutor

from sluice.airflow.blueprint import airflows_config, base
from sluice.errors import SluiceError

TASK = ("sluice.airflow.dag_factory", "sluice.airflow.pending", "sluice.report.publish")
CLIENT, JOBS = "pyspark.sql.connect.session", "sluice.cli.job"


class WarmLocalExecutor(LocalExecutor):  # type: ignore[misc]
    """Run tasks on this machine, each in a fork with most imports done."""

    def start(self) -> None:
        """Import modules, read the configuration, then start the workers."""
        for module in TASK:
            import_module(module)
        config = airflows_config()
        with suppress(SluiceError):
            if base(config).spark.engine == "connect":
                import_module(CLIENT)
                import_module(JOBS)
                for script in (config.parent / "jobs").glob("[!_]*.py"):
                    runpy.run_path(str(script), run_name="imported")
        super().start()
