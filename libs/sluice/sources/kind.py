"""All that others ask of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sluice.declare.kind import Kind
from sluice.sources.spec import Source

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.declare.document import Where
    from sluice.declare.project import Project
    from sluice.declare.resolution import TableMistakes
    from sluice.declare.table import Graph, Table
    from sluice.delta.notes.intervals import Note
    from sluice.engine.advance import Run
    from sluice.engine.batch_report import BatchReport
    from sluice.engine.planning.next_batch import NextBatch
    from sluice.engine.planning.nodes import Node
    from sluice.engine.query.operator import Groups, InputRows, Operator
    from sluice.language.interval import Interval
    from sluice.read.pending import Outside, Unread
    from sluice.sources.origins import Origin
    from sluice.spark.session import Spark


class SourceKind(Kind):
    """`Source` as a kind of table."""

    model = Source

    def resolve(
        self, spec: Source, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        from sluice.sources.resolve import resolve

        return resolve(spec, mistakes)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.sources.operator import nodes

        return nodes(table)

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        from sluice.sources.operator import trace_rows

        return trace_rows(operator, groups)

    def nothing_new(self, project: Project, table: Table, interval: Interval | None) -> str | None:
        return _origin(project, table).nothing_new(interval)

    def unread(self, project: Project, table: Table) -> tuple[Unread, ...]:
        return _origin(project, table).unread()

    def outside(self, project: Project, table: Table, now: datetime) -> Outside:
        return _origin(project, table).outside(now)

    def checks(self, project: Project, table: Table) -> Iterator[Callable[[], object]]:
        return _origin(project, table).checks()

    def address(self, project: Project, table: Table) -> str:
        return _origin(project, table).address

    def files_read(self, project: Project, table: Table, note: Note) -> tuple[str, ...]:
        return _origin(project, table).files_read(note)

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
        from sluice.sources.feeds import feed_of

        yield from feed_of(project, table).read(spark, run, interval)

    def replay(
        self, spark: Spark, project: Project, table: Table, run: Run, intervals: Iterable[Interval]
    ) -> Iterator[BatchReport]:
        from sluice.sources.feeds import feed_of

        yield from feed_of(project, table).replay(spark, run, intervals)

    def follow(
        self, spark: Spark, project: Project, table: Table, run: Run
    ) -> tuple[BatchReport, ...]:
        from sluice.sources.feeds import follow

        return follow(spark, project, table, run)

    def resume(self, project: Project, table: Table, run: Run, *, latest: bool) -> BatchReport:
        from sluice.sources.feeds import resume

        return resume(project, table, run, latest=latest)

    def rebuild(
        self, spark: Spark, project: Project, table: Table, run: Run, as_landed: bool
    ) -> tuple[BatchReport, bool] | None:
        from sluice.sources.rebuild import rebuild

        return rebuild(spark, project, table, run, as_landed)


def _origin(project: Project, table: Table) -> Origin:
    from sluice.sources.origins import origin_of

    return origin_of(project, table)
