"""Delivery of a dimension, which is loaded whole: what commands and runs ask of it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.notes.intervals import Note
from sluice.dimensions.load import load
from sluice.dimensions.rebuild import rebuild
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.language.interval import Interval
from sluice.spark.session import Spark

__all__ = ["address", "checks", "deliver", "files_read", "follow", "rebuild", "replay"]


def deliver(
    spark: Spark,
    project: Project,
    table: Table,
    run: Run,
    interval: Interval | None = None,
) -> Iterator[BatchReport]:
    """Load its present state, whatever the interval."""
    yield from load(spark, project, table, run)


def follow(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Do nothing: a load puts its rows into the table."""
    return ()


def replay(
    spark: Spark, project: Project, table: Table, run: Run, intervals: Iterable[Interval]
) -> Iterator[BatchReport]:
    """Load it again for its one interval, if that has quarantined rows."""
    for _ in intervals:
        yield from load(spark, project, table, replace(run, full_refresh=True))


def checks(project: Project, table: Table) -> Iterator[Callable[[], object]]:
    """Check nothing: a load reads what there is."""
    return iter(())


def address(project: Project, table: Table) -> str:
    """Return the folder of its files, or the foreign table."""
    return project.address(table.spec)


def files_read(project: Project, table: Table, note: Note) -> tuple[str, ...]:
    """Name none: its rows name no delivery."""
    return ()
