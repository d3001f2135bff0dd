"""All that others ask of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sluice.declare.kind import Kind
from sluice.sources.spec import Source

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.declare.graph import Graph
    from sluice.declare.project import Project
    from sluice.declare.resolution.scope import TableMistakes
    from sluice.declare.table import Table
    from sluice.declare.text.document import Where
    from sluice.delta.notes.intervals import Note
    from sluice.engine.advance import Run
    from sluice.engine.batch_report import BatchReport
    from sluice.engine.planning.next_batch import NextBatch
    from sluice.engine.planning.node import Node
    from sluice.engine.query.lineage import Groups
    from sluice.engine.query.operator import InputRows, Operator
    from sluice.language.interval import Interval
    from sluice.read.pending import Outside, Unread
    from sluice.spark.session import Spark


class SourceKind(Kind):
    """`Source` as a kind of table."""

    model = Source

    def resolve(
        self, spec: Source, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        from sluice.sources.resolve import resolve

        return resolve(spec, inputs, mistakes)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.sources.nodes import nodes

        return nodes(table, graph)

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        from sluice.sources.lineage import contributing

        return contributing(operator, groups)

    def nothing_new(self, project: Project, table: Table, interval: Interval | None) -> str | None:
        from sluice.sources.pending import nothing_new

        return nothing_new(project, table, interval)

    def unread(self, project: Project, table: Table) -> tuple[Unread, ...]:
        from sluice.sources.lag import unread

        return unread(project, table)

    def outside(self, project: Project, table: Table, now: datetime) -> Outside:
        from sluice.sources.lag import outside

        return outside(project, table, now)

    def deliveries_ahead(
        self, project: Project, table: Table, now: datetime, redefined: Mapping[str, str]
    ) -> Iterator[NextBatch]:
        from sluice.sources.plan import deliveries_ahead

        return deliveries_ahead(project, table, now, redefined)

    def deliver(
        self,
        spark: Spark,
        project: Project,
        table: Table,
        run: Run,
        interval: Interval | None = None,
    ) -> Iterator[BatchReport]:
        from sluice.sources.deliver import deliver

        return deliver(spark, project, table, run, interval)

    def follow(
        self, spark: Spark, project: Project, table: Table, run: Run
    ) -> tuple[BatchReport, ...]:
        from sluice.sources.deliver import follow

        return follow(spark, project, table, run)

    def replay(
        self, spark: Spark, project: Project, table: Table, run: Run, intervals: Iterable[Interval]
    ) -> Iterator[BatchReport]:
        from sluice.sources.deliver import replay

        return replay(spark, project, table, run, intervals)

    def rebuild(
        self, spark: Spark, project: Project, table: Table, run: Run, as_landed: bool
    ) -> tuple[BatchReport, bool] | None:
        from sluice.sources.deliver import rebuild

        return rebuild(spark, project, table, run, as_landed)

    def checks(self, project: Project, table: Table) -> Iterator[Callable[[], object]]:
        from sluice.sources.deliver import checks

        return checks(project, table)

    def address(self, project: Project, table: Table) -> str:
        from sluice.sources.deliver import address

        return address(project, table)

    def files_read(self, project: Project, table: Table, note: Note) -> tuple[str, ...]:
        from sluice.sources.deliver import files_read

        return files_read(project, table, note)

    def resume(self, project: Project, table: Table, run: Run, *, latest: bool) -> BatchReport:
        from sluice.sources.resume import resume

        return resume(project, table, run, latest=latest)
