"""Tables that are delivered from outside, as commands and runs see them, whatever their kind."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, runtime_checkable

from sluice.declare.project import Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.delta.notes.intervals import Note
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.errors import UsageError
from sluice.language.interval import Interval
from sluice.spark.session import Spark


@runtime_checkable
class Delivering(Protocol):
    """Kind whose rows are delivered from outside."""

    def deliver(
        self,
        spark: Spark,
        project: Project,
        table: Table,
        run: Run,
        interval: Interval | None = None,
    ) -> Iterator[BatchReport]:
        """Deliver that interval, or all that is new; report each batch when it is committed.

        A table delivered by interval needs one. `follow` is left to the caller.
        """
        ...

    def follow(
        self, spark: Spark, project: Project, table: Table, run: Run
    ) -> tuple[BatchReport, ...]:
        """Bring a table up to the deliveries that are kept beside it; do nothing without them."""
        ...

    def replay(
        self, spark: Spark, project: Project, table: Table, run: Run, intervals: Iterable[Interval]
    ) -> Iterator[BatchReport]:
        """Read intervals with quarantined rows again, even if their files have not changed.

        `follow` is left to the caller.
        """
        ...

    def rebuild(
        self, spark: Spark, project: Project, table: Table, run: Run, as_landed: bool
    ) -> tuple[BatchReport, bool] | None:
        """Read again what was delivered; return whether that ends the feed. None if it is kept."""
        ...

    def checks(self, project: Project, table: Table) -> Iterator[Callable[[], object]]:
        """Yield what raises an error if the next delivery can't succeed. Asks brokers, too."""
        ...

    def address(self, project: Project, table: Table) -> str:
        """Return the origin of the rows: a landing folder, a foreign table, or a topic.

        Raises UsageError if the environment lacks a connection.
        """
        ...

    def files_read(self, project: Project, table: Table, note: Note) -> tuple[str, ...]:
        """Return the files that a delivery has read; of another's table, its versions."""
        ...


@runtime_checkable
class Resuming(Protocol):
    """Kind whose tables may follow a place outside the lake."""

    def resume(self, project: Project, table: Table, run: Run, *, latest: bool) -> BatchReport:
        """Continue at the newest end, or the oldest, as the function `resume`."""
        ...


def delivering(table: Table) -> Delivering:
    """Return what delivers a table that is delivered from outside."""
    found = kind(table.kind)
    assert isinstance(found, Delivering)
    return found


def resume(project: Project, table: Table, run: Run, *, latest: bool) -> BatchReport:
    """Continue at the newest end, or the oldest. The gap is noted in the commit; no row changes.

    Raises UsageError if the table follows nothing, or if nothing was read yet.
    """
    if not table.spec.is_followed:
        raise UsageError(
            f"--from needs a table that follows a Kafka topic or a Delta table; {table.id} does not"
        )
    resuming = kind(table.kind)
    assert isinstance(resuming, Resuming)
    return resuming.resume(project, table, run, latest=latest)
