"""Maintain tables without changing a visible row: `maintain.py TABLE...`."""

import sys

from sluice.cli.job import Job, run_job
from sluice.declare.table import Table
from sluice.operate.maintain import Upkeep, maintain
from sluice.spark.session import Spark


def step(job: Job, spark: Spark, table: Table) -> list[Upkeep]:
    """Maintain a table and the internal tables behind it."""
    return maintain(spark, job.project, [table])


def main() -> None:
    """Run the job by the arguments of this process, and exit with its code."""
    sys.exit(run_job(step, keeps_failures=False))


if __name__ == "__main__":
    main()
