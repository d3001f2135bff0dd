"""Ingest sources and load dimensions: `ingest.py SOURCE... DIMENSION... --start T --end T`."""

import sys
from collections.abc import Iterator

from sluice.cli.job import Job, run_job
from sluice.declare.table import Table
from sluice.dimensions.load import load
from sluice.engine.report import BatchReport
from sluice.sources.ingest import ingest
from sluice.sources.stream import ingest_stream, is_stream
from sluice.spark.session import Spark


def step(job: Job, spark: Spark, table: Table) -> Iterator[BatchReport]:
    """Ingest a source interval by interval, or bring in a stream or dimension as it is now."""
    if table.is_dimension:
        yield from load(spark, job.project, table, job.run)
    elif is_stream(table):
        yield from ingest_stream(spark, job.project, table, job.run)
    else:
        for interval in job.intervals(table.pipeline):
            yield from ingest(spark, job.project, table, interval, job.run)


def main() -> None:
    """Run the job by the arguments of this process, and exit with its code."""
    sys.exit(run_job(step))


if __name__ == "__main__":
    main()
