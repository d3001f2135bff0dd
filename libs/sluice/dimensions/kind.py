"""All that others ask of a dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.declare.registry import Kind
from sluice.dimensions import Dimension, resolve

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.declare.document import Where
    from sluice.declare.project import Project
    from sluice.declare.resolution import TableMistakes
    from sluice.declare.table import Table
    from sluice.delta.intervals import Note
    from sluice.engine import BatchReport
    from sluice.engine.advance import Run
    from sluice.engine.next_batch import NextBatch
    from sluice.language.interval import Interval
    from sluice.read.keyed import KeyValues
    from sluice.read.lake import Lake
    from sluice.spark.session import Spark


class DimensionKind(Kind):
    """`Dimension` as a kind of table."""

    model = Dimension

    def resolve(
        self, spec: Dimension, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        return resolve(spec, mistakes)

    def open_table(
        self, lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
    ) -> KeyValues:
        """Open the dimension as a key-value store; of a history, the keys' current rows."""
        current = "is_current" if table.spec.has_history else None
        return lake.stored(table, version, backward_iteration=backward_iteration, current=current)

    def nothing_new(self, project: Project, table: Table, interval: Interval | None) -> str | None:
        from sluice.dimensions.source import nothing_new

        return nothing_new(project, table)

    def deliveries_ahead(
        self, project: Project, table: Table, now: datetime, redefined: Mapping[str, str]
    ) -> Iterator[NextBatch]:
        from sluice.dimensions.load import plan_load

        yield plan_load(project, table, redefined.get(table.id, ""))

    def deliver(
        self,
        spark: Spark,
        project: Project,
        table: Table,
        run: Run,
        interval: Interval | None = None,
    ) -> Iterator[BatchReport]:
        """Load the dimension's present state; the interval does not matter."""
        from sluice.dimensions.load import load

        yield from load(spark, project, table, run)

    def follow(
        self, spark: Spark, project: Project, table: Table, run: Run
    ) -> tuple[BatchReport, ...]:
        """Do nothing: a load puts its rows into the table."""
        return ()

    def replay(
        self, spark: Spark, project: Project, table: Table, run: Run, intervals: Iterable[Interval]
    ) -> Iterator[BatchReport]:
        """Load the dimension again if its last load has rows in quarantine."""
        for _ in intervals:
            yield from self.deliver(spark, project, table, replace(run, full_refresh=True))

    def rebuild(
        self, spark: Spark, project: Project, table: Table, run: Run, as_landed: bool
    ) -> tuple[BatchReport, bool] | None:
        from sluice.dimensions.load import rebuild

        return rebuild(spark, project, table, run)

    def checks(self, project: Project, table: Table) -> Iterator[Callable[[], object]]:
        """Yield nothing: a load reads whatever is there, so nothing can be checked before."""
        return iter(())

    def address(self, project: Project, table: Table) -> str:
        """Return the folder of its files, or the foreign table."""
        return project.address(table.spec)

    def files_read(self, project: Project, table: Table, note: Note) -> tuple[str, ...]:
        """Return no files: rows of a dimension do not record their delivery."""
        return ()
