"""Maintain tables without changing a visible row: `maintain.py TABLE...`."""

import sys

from sluice.cli.job import Job, run_job
from sluice.runtime.maintain import Upkeep, maintain
from sluice.runtime.session import Spark
from sluice.specs.table import Table


def step(job: Job, spark: Spark, table: Table) -> list[Upkeep]:
    """Maintain a table and the internal tables behind it."""
    return maintain(spark, job.project, [table])


if __name__ == "__main__":
    sys.exit(run_job(step, keeps_failures=False))
