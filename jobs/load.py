"""Brings dimensions to the state of their sources: `load.py DIMENSION...`."""

import sys
from collections.abc import Iterator

from sluice.cli.job import Job, run_job
from sluice.runtime.load import load
from sluice.runtime.report import BatchReport


def work(job: Job) -> Iterator[BatchReport]:
    """Each dimension."""
    for table in job.tables:
        yield from load(job.spark, job.project, table, job.run)


if __name__ == "__main__":
    sys.exit(run_job(work))
