"""Bring dimensions to the state of their sources: `load.py DIMENSION...`."""

import sys

from sluice.cli.job import Job, run_job
from sluice.runtime.load import load
from sluice.runtime.report import BatchReport
from sluice.runtime.session import Spark
from sluice.specs.table import Table


def step(job: Job, spark: Spark, table: Table) -> tuple[BatchReport, ...]:
    """Load a dimension."""
    return load(spark, job.project, table, job.run)


if __name__ == "__main__":
    sys.exit(run_job(step))
