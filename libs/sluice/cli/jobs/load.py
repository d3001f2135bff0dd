"""Bring dimensions to the state of their sources: `load.py DIMENSION...`."""

import sys

from sluice.cli.job import Job, run_job
from sluice.declare.table import Table
from sluice.dimensions.load import load
from sluice.engine.report import BatchReport
from sluice.spark.session import Spark


def step(job: Job, spark: Spark, table: Table) -> tuple[BatchReport, ...]:
    """Load a dimension."""
    return load(spark, job.project, table, job.run)


def main() -> None:
    """Run the job by the arguments of this process, and exit with its code."""
    sys.exit(run_job(step))


if __name__ == "__main__":
    main()
