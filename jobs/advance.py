"""Brings views up to their inputs: `advance.py VIEW...`, inputs before the views over them."""

import sys
from collections.abc import Iterator

from sluice.cli.job import Job, run_job
from sluice.runtime.batch import advance
from sluice.runtime.report import BatchReport


def work(job: Job) -> Iterator[BatchReport]:
    """Each view."""
    for table in job.tables:
        yield from advance(job.spark, job.project, table, job.run)


if __name__ == "__main__":
    sys.exit(run_job(work))
