"""Check the expectations of whole tables: `sweep.py TABLE...`."""

from sluice.cli.job import Job, command
from sluice.declare.table import Table
from sluice.operate.maintain import Swept, sweep
from sluice.spark.session import Spark
from sluice.terminal.program import run


def step(job: Job, spark: Spark, table: Table) -> list[Swept]:
    """Check a table as it is. Unmet expectations are reported but don't fail the job."""
    return [sweep(spark, job.project, table, job.run.id)]


main = command(step, keeps_failures=False)

if __name__ == "__main__":
    run(main)
