"""Bring views up to their inputs: `advance.py VIEW...`."""

from sluice.cli.job import Job, command
from sluice.declare.table import Table
from sluice.engine.batch_report import BatchReport
from sluice.operate.bring import bring_up
from sluice.operate.definitions.rebuild import rebuild
from sluice.spark.session import Spark
from sluice.terminal.program import run


def step(job: Job, spark: Spark, table: Table) -> tuple[BatchReport, ...]:
    """Advance a view and the internal tables behind it; a full refresh rebuilds them."""
    if job.run.full_refresh:
        return rebuild(spark, job.project, table, job.run)
    return bring_up(spark, job.project, table, job.run)


main = command(step)

if __name__ == "__main__":
    run(main)
