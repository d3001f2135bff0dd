"""Brings in what comes from outside: `ingest.py SOURCE... DIMENSION... --start T --end T`."""

import sys
from collections.abc import Iterator

from sluice.cli.job import Job, run_job
from sluice.runtime.ingest import ingest
from sluice.runtime.load import load
from sluice.runtime.report import BatchReport


def work(job: Job) -> Iterator[BatchReport]:
    """Each source, interval by interval; a dimension as it is now."""
    for table in job.tables:
        if table.kind == "dimension":
            yield from load(job.spark, job.project, table, job.run)
            continue
        for interval in job.intervals(table.pipeline):
            yield from ingest(job.spark, job.project, table, interval, job.run)


if __name__ == "__main__":
    sys.exit(run_job(work))
