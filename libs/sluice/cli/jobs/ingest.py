"""Ingest sources and load dimensions: `ingest.py SOURCE... DIMENSION... --start T --end T`."""

from collections.abc import Iterator, Sequence

from sluice.cli.job import Job, command
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.language.interval import Interval
from sluice.operate.bring import brought
from sluice.operate.delivering import delivering
from sluice.spark.session import Spark
from sluice.terminal.program import run


def deliver(
    spark: Spark, project: Project, table: Table, run: Run, intervals: Sequence[Interval]
) -> Iterator[BatchReport]:
    """Ingest a source interval by interval, or bring in a stream or dimension as it is now.

    For a topic, the messages of these intervals are read again. Each batch is reported when it
    is committed, whatever becomes of the next.
    """
    yield from brought(spark, project, table, run)
    kind = delivering(table)
    spans = intervals if table.spec.is_by_interval else intervals or (None,)
    for interval in spans:
        yield from kind.deliver(spark, project, table, run, interval)
        yield from kind.follow(spark, project, table, run)
    if not spans:
        yield from kind.follow(spark, project, table, run)


def step(job: Job, spark: Spark, table: Table) -> Iterator[BatchReport]:
    """Deliver to each table: intervals to a source, its present state to a dimension."""
    return deliver(spark, job.project, table, job.run, job.asked[table.id])


main = command(step)

if __name__ == "__main__":
    run(main)
