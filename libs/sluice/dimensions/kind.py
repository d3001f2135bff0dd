"""All that others ask of a dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sluice.declare.kind import Kind
from sluice.dimensions.spec import Dimension

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.declare.project import Project
    from sluice.declare.resolution.scope import TableMistakes
    from sluice.declare.table import Table
    from sluice.declare.text.document import Where
    from sluice.delta.notes.intervals import Note
    from sluice.engine.advance import Run
    from sluice.engine.batch_report import BatchReport
    from sluice.engine.planning.next_batch import NextBatch
    from sluice.language.interval import Interval
    from sluice.read.lake import Lake
    from sluice.read.ordered.key_values import KeyValues
    from sluice.spark.session import Spark


class DimensionKind(Kind):
    """`Dimension` as a kind of table."""

    model = Dimension

    def resolve(
        self, spec: Dimension, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        from sluice.dimensions.resolve import resolve

        return resolve(spec, inputs, mistakes)

    def open_table(
        self, lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
    ) -> KeyValues:
        from sluice.dimensions.reader import opened

        return opened(lake, table, version, backward_iteration=backward_iteration)

    def verbs(self) -> Mapping[str, Callable[..., Any]]:
        from sluice.dimensions.reader import VERBS

        return VERBS

    def nothing_new(self, project: Project, table: Table, interval: Interval | None) -> str | None:
        from sluice.dimensions.pending import nothing_new

        return nothing_new(project, table, interval)

    def deliveries_ahead(
        self, project: Project, table: Table, now: datetime, redefined: Mapping[str, str]
    ) -> Iterator[NextBatch]:
        from sluice.dimensions.plan import deliveries_ahead

        return deliveries_ahead(project, table, now, redefined)

    def deliver(
        self,
        spark: Spark,
        project: Project,
        table: Table,
        run: Run,
        interval: Interval | None = None,
    ) -> Iterator[BatchReport]:
        from sluice.dimensions.deliver import deliver

        return deliver(spark, project, table, run, interval)

    def follow(
        self, spark: Spark, project: Project, table: Table, run: Run
    ) -> tuple[BatchReport, ...]:
        from sluice.dimensions.deliver import follow

        return follow(spark, project, table, run)

    def replay(
        self, spark: Spark, project: Project, table: Table, run: Run, intervals: Iterable[Interval]
    ) -> Iterator[BatchReport]:
        from sluice.dimensions.deliver import replay

        return replay(spark, project, table, run, intervals)

    def rebuild(
        self, spark: Spark, project: Project, table: Table, run: Run, as_landed: bool
    ) -> tuple[BatchReport, bool] | None:
        from sluice.dimensions.deliver import rebuild

        return rebuild(spark, project, table, run, as_landed)

    def checks(self, project: Project, table: Table) -> Iterator[Callable[[], object]]:
        from sluice.dimensions.deliver import checks

        return checks(project, table)

    def address(self, project: Project, table: Table) -> str:
        from sluice.dimensions.deliver import address

        return address(project, table)

    def files_read(self, project: Project, table: Table, note: Note) -> tuple[str, ...]:
        from sluice.dimensions.deliver import files_read

        return files_read(project, table, note)
