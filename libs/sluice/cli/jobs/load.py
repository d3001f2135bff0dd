"""Bring dimensions to the state of their sources: `load.py DIMENSION...`."""

from collections.abc import Iterator

from sluice.cli.job import Job, command
from sluice.cli.jobs.ingest import deliver
from sluice.declare.table import Table
from sluice.engine.batch_report import BatchReport
from sluice.spark.session import Spark
from sluice.terminal.program import run


def step(job: Job, spark: Spark, table: Table) -> Iterator[BatchReport]:
    """Load a dimension."""
    return deliver(spark, job.project, table, job.run, ())


main = command(step)

if __name__ == "__main__":
    run(main)
