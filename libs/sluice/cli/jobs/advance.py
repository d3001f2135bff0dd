"""Bring views up to their inputs: `advance.py VIEW...`."""

import sys

from sluice.cli.job import Job, run_job
from sluice.declare.table import Table
from sluice.engine.advance import advance
from sluice.engine.report import BatchReport
from sluice.operate.rebuild import rebuild
from sluice.spark.session import Spark


def step(job: Job, spark: Spark, table: Table) -> tuple[BatchReport, ...]:
    """Advance a view and the internal tables behind it; a full refresh rebuilds them."""
    bring = rebuild if job.run.full_refresh else advance
    return bring(spark, job.project, table, job.run)


def main() -> None:
    """Run the job by the arguments of this process, and exit with its code."""
    sys.exit(run_job(step))


if __name__ == "__main__":
    main()
