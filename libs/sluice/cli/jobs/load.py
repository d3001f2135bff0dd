"""Bring dimensions to the state of their sources: `load.py DIMENSION...`."""

from sluice.cli.job import Job, command
from sluice.declare.table import Table
from sluice.dimensions.load import load
from sluice.engine.report import BatchReport
from sluice.spark.session import Spark


def step(job: Job, spark: Spark, table: Table) -> tuple[BatchReport, ...]:
    """Load a dimension."""
    return load(spark, job.project, table, job.run)


main = command(step)

if __name__ == "__main__":
    main()
