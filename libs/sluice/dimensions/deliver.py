"""Delivery of a dimension, which is loaded whole: what commands and runs ask of it."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.notes.intervals import Note
from sluice.dimensions.load import load
from sluice.dimensions.rebuild import load_again
from sluice.engine.advance import Run
from sluice.engine.report import BatchReport
from sluice.language.interval import Interval
from sluice.spark.session import Spark


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


def rebuild(
    spark: Spark, project: Project, table: Table, run: Run, as_landed: bool
) -> Iterator[tuple[BatchReport, bool]]:
    """Load it whole in place of its rows."""
    yield load_again(spark, project, table, run)


def checks(project: Project, table: Table) -> Iterator[Callable[[], object]]:
    """Check nothing: a load reads what there is."""
    return iter(())


def files(project: Project, table: Table, note: Note) -> tuple[str, ...]:
    """Name none: a load's rows bear no interval."""
    return ()


def address(project: Project, table: Table) -> str:
    """Return the folder of its files; nothing of a database."""
    place = table.spec.place
    return project.resolve(re.split(r"[{*]", place)[0]) if place else ""


def grown(project: Project, table: Table) -> Table:
    """Return the table itself: a load takes no columns."""
    return table
