"""Maintain tables without changing a visible row: `maintain.py TABLE...`."""

from sluice.cli.job import Job, command
from sluice.declare.table import Table
from sluice.operate.maintain import Upkeep, maintain
from sluice.spark.session import Spark
from sluice.terminal.program import run


def step(job: Job, spark: Spark, table: Table) -> list[Upkeep]:
    """Maintain a table and the internal tables behind it."""
    return maintain(spark, job.project, [table])


main = command(step, keeps_failures=False)

if __name__ == "__main__":
    run(main)
