"""Tables that are delivered from outside, as commands and runs see them, whatever their kind."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, cast

from sluice.declare.project import Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.delta.notes.intervals import Note
from sluice.engine.advance import Run
from sluice.engine.report import BatchReport
from sluice.errors import UsageError
from sluice.language.interval import Interval
from sluice.spark.session import Spark


class Delivering(Protocol):
    """Module `deliver` of a kind whose rows are delivered from outside."""

    def deliver(
        self,
        spark: Spark,
        project: Project,
        table: Table,
        run: Run,
        intervals: Sequence[Interval] = (),
        follows: bool = True,
    ) -> Iterator[BatchReport]:
        """Deliver those intervals; all that is new, if the table is not delivered by interval.

        Without `follows`, the table that is computed from an interval's delivery is left to
        `follow`.
        """
        ...

    def follow(
        self, spark: Spark, project: Project, table: Table, run: Run
    ) -> tuple[BatchReport, ...]:
        """Bring a table up to the deliveries that are kept beside it; do nothing without them."""
        ...

    def replay(
        self,
        spark: Spark,
        project: Project,
        table: Table,
        run: Run,
        intervals: Iterable[Interval],
    ) -> Iterator[BatchReport]:
        """Read intervals with quarantined rows again, even if their files have not changed."""
        ...

    def rebuild(
        self, spark: Spark, project: Project, table: Table, run: Run, as_landed: bool
    ) -> Iterator[tuple[BatchReport, bool]]:
        """Read again what was delivered, unless it is kept; yield whether the feed is cut."""
        ...

    def checks(self, project: Project, table: Table) -> Iterator[Callable[[], object]]:
        """Yield what raises an error if the next delivery can't succeed. Asks brokers, too."""
        ...

    def files(self, project: Project, table: Table, note: Note) -> tuple[str, ...]:
        """Return the files that a delivery has read, or the place and versions of a table."""
        ...

    def address(self, project: Project, table: Table) -> str:
        """Return where its rows come from outside the lake. Raises UsageError if unknown."""
        ...

    def grown(self, project: Project, table: Table) -> Table:
        """Return the table with the columns that its deliveries have taken."""
        ...


class Resuming(Protocol):
    """Module `resume` of a kind that may follow a topic or another's table."""

    def resume(self, project: Project, table: Table, run: Run, latest: bool) -> BatchReport:
        """Continue at the newest end, or the oldest. The gap is noted; no row changes."""
        ...


def delivering(table: Table) -> Delivering:
    """Return what delivers a table that is delivered from outside."""
    return cast(Delivering, kind(table.kind).part("deliver"))


def grown(project: Project, table: Table) -> Table:
    """Return the table with the columns that its deliveries, if any, have taken."""
    return delivering(table).grown(project, table) if table.is_delivered else table


def resume(project: Project, table: Table, run: Run, *, latest: bool) -> BatchReport:
    """Continue at the newest end of a topic or table, or the oldest. Raises UsageError."""
    if not table.spec.is_followed:
        raise UsageError(
            f"{table.id} follows neither a Kafka topic nor a Delta table: --from is about places "
            "in these"
        )
    return cast(Resuming, kind(table.kind).part("resume")).resume(project, table, run, latest)
