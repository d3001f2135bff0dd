"""All that others ask of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sluice.declare.document import Where
from sluice.declare.registry import Kind
from sluice.declare.resolution import Scope, TableMistakes, check_columns
from sluice.declare.table import Table
from sluice.extras import is_installed
from sluice.language.names import HIDDEN_TYPES, ID, INTERVAL, unknown
from sluice.sources import Source, ValueFormat

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.declare.project import Project
    from sluice.declare.table import Graph
    from sluice.delta.intervals import Note
    from sluice.engine import BatchReport
    from sluice.engine.advance import Run
    from sluice.engine.next_batch import NextBatch
    from sluice.engine.operator import InputRows, Operator
    from sluice.engine.plan import Node
    from sluice.engine.tracing import Groups
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
        """Return the source's table: its columns without the one with the row's operation."""
        if "max_ahead" in spec.model_fields_set and not spec.time:
            what = "`max_ahead` guards the event time: name its column as `time`"
            mistakes.add(("max_ahead",), what)
        check_columns(spec, mistakes)
        for where, message in _check_fields(spec.value, spec.types) if spec.value else ():
            mistakes.add(where, message)
        if spec.time:
            Scope(spec.types).check_time(spec.time, mistakes, "time")
        if spec.delta and spec.delta.changes == "refuse":
            spec = spec.model_copy(update={"read_at": mistakes.with_place(("delta",), "")})
        key = spec.key or (INTERVAL, ID)
        hidden = {name: HIDDEN_TYPES[name] for name in key if name in HIDDEN_TYPES}
        return Table(spec.name, spec.pipeline, spec.KIND, spec.row_types, key, spec, hidden=hidden)

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
        from sluice.sources.feeds import deliveries_ahead

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


def _check_fields(value: ValueFormat, columns: Iterable[str]) -> Iterator[tuple[Where, str]]:
    """Yield mistakes in the files, or columns that no message has, with their places.

    Nothing is checked of other messages, or where the client of Kafka is not installed.
    """
    if not value.files or not is_installed("kafka"):
        return
    try:
        name, fields = _fields_of(value)
    except LookupError as fault:
        yield ("value", "message"), str(fault)
    except ValueError as fault:
        yield ("value", "files"), str(fault)
    else:
        for column in columns:
            if column not in fields:
                yield ("schema",), f"{name} has no such field: {unknown('field', column, fields)}"


def _fields_of(value: ValueFormat) -> tuple[str, list[str]]:
    """Return a message's name, and the names of its fields."""
    from sluice.sources.kafka.schemas import avro_fields, declared_type

    if value.format == "protobuf":
        found = declared_type(value)
        return found.full_name, [field.name for field in found.fields]
    name, fields = avro_fields(value)
    return name, sorted(fields)
