"""Delivery of a dimension, which is loaded whole: what commands and runs ask of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.dimensions.load import load
from sluice.dimensions.rebuild import rebuild
from sluice.engine.advance import Run
from sluice.engine.report import BatchReport
from sluice.language.interval import Interval
from sluice.spark.session import Spark

__all__ = ["checks", "deliver", "follow", "rebuild", "replay"]


def deliver(
    spark: Spark,
    project: Project,
    table: Table,
    run: Run,
    intervals: Sequence[Interval] = (),
    follows: bool = True,
) -> Iterator[BatchReport]:
    """Load its present state, whatever the intervals."""
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
