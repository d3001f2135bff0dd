"""Delivers intervals of sources: `ingest.py SOURCE... --start T --end T`."""

import sys
from collections.abc import Iterator

from sluice.cli.job import Job, run_job
from sluice.runtime.ingest import ingest
from sluice.runtime.report import BatchReport


def work(job: Job) -> Iterator[BatchReport]:
    """Each source, interval by interval."""
    for table in job.tables:
        for interval in job.intervals(table.pipeline):
            yield from ingest(job.spark, job.project, table, interval, job.run)


if __name__ == "__main__":
    sys.exit(run_job(work))
