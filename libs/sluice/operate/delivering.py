"""Tables that are delivered from outside, as commands and runs see them, whatever their kind."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, cast

from sluice.declare.project import Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.engine.advance import Run
from sluice.engine.report import BatchReport
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
        self, spark: Spark, project: Project, table: Table, run: Run, intervals: Iterable[Interval]
    ) -> Iterator[BatchReport]:
        """Read intervals with quarantined rows again, even if their files have not changed."""
        ...

    def rebuild(
        self, spark: Spark, project: Project, table: Table, run: Run, as_landed: bool
    ) -> tuple[BatchReport, bool] | None:
        """Read again what was delivered; return whether that ends the feed. None if it is kept."""
        ...

    def checks(self, project: Project, table: Table) -> Iterator[Callable[[], object]]:
        """Yield what raises an error if the next delivery can't succeed. Asks brokers, too."""
        ...


def delivering(table: Table) -> Delivering:
    """Return what delivers a table that is delivered from outside."""
    return cast(Delivering, kind(table.kind).part("deliver"))
