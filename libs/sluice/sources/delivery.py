"""One delivery of a source, planned without Spark: its path, what it replaces, its target table.

The module also prepares its rows: for the gate, and for storing. Rows of one key that differ, of
which none is known to be later, are in conflict.

Files may bring columns beyond the declared ones, if a source takes them (`evolve: true`). A column
that was taken belongs to the table from then on. Rows delivered before are null in it; a file that
lacks it is read as one of nulls. A file with another kind of type stops the batch. Parquet states a
column's type; CSV and JSON bring texts. Views read only the columns that they name, so a taken
column does not affect them until it is declared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sluice.declare.declared import REASON, UNDATED, Declared
from sluice.declare.declared import Column as ExtraColumn
from sluice.declare.meaning import definition_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta import intervals
from sluice.delta.log.position import Head, head
from sluice.delta.places.folders import LandedFile
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.delta.reading import landing
from sluice.delta.writing.commit import add_columns, columns_at
from sluice.engine.operator import names
from sluice.engine.plan import beyond, with_columns, with_taken_columns
from sluice.errors import Retryable
from sluice.files.conversion import BLOCK, NANOS, ROW, VOID
from sluice.files.filehead import FileHead
from sluice.files.json import names_of_lines
from sluice.files.reading import (
    OP,
    POSITION,
    Reading,
    comparable,
    identify,
    json_lines,
    look,
    operations,
    place_rows,
    rows_of,
    unknown_word,
)
from sluice.gate.counts import CONFLICT
from sluice.gate.gate import Gate, visible
from sluice.language.interval import INSTANT, Interval, show
from sluice.language.names import ID, INTERVAL, INTERVALS, check_name
from sluice.language.types import INTEGERS, common
from sluice.limits import Limits
from sluice.sources import Source
from sluice.sources.origins import list_files


def next_moment(last: datetime | None) -> datetime:
    """Return the moment of a batch that has no interval: now, but after that of the last one."""
    now = datetime.now(UTC)
    return max(now, last + INSTANT) if last else now


@dataclass(frozen=True)
class Delivery:
    """Rows of one interval of one source. `path`: their place, with placeholders filled.

    For a topic or a table that others write, `topic` is the place after the batch, `after` the one
    before it, and `message_bytes` its size. `is_added`: its rows join those that the interval has.
    """

    table: Table
    spec: Source
    interval: Interval
    path: str
    files: tuple[LandedFile, ...] = ()
    fingerprint: str = ""
    replaced: tuple[intervals.Note, ...] = ()
    noted: tuple[intervals.Note, ...] = ()
    timezone: str = "UTC"
    topic: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    message_bytes: int = 0
    is_added: bool = False

    @property
    def is_of_messages(self) -> bool:
        """True if its rows are messages, which bring their identity and what they do."""
        return self.spec.kafka is not None

    @property
    def is_delivered(self) -> bool:
        """True if exactly these files were ingested for exactly this interval."""
        return any(
            d.interval == self.interval and d.files == self.fingerprint for d in self.replaced
        )

    @property
    def bytes(self) -> int:
        """The size of its files or messages."""
        return self.message_bytes + sum(f.size for f in self.files)

    @property
    def is_absent(self) -> bool:
        """True if it has no files, which its source declares as ordinary."""
        return not self.files and self.spec.missing == "empty" and not self.is_of_messages

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that are known before anything is read."""
        if self.files or self.is_absent or self.spec.delivery == "stream":
            return ()
        start = show(self.interval.start, self.timezone)
        return (f"{self.table.id}: nothing was delivered for {start}; the interval has no rows",)


def plan_delivery(
    project: Project, table: Table, interval: Interval, *, allow_empty: bool = False
) -> Delivery:
    """Return what an interval's delivery would read and replace. Starts no Spark.

    Raises UsageError if the interval overlaps an earlier delivery only in part; Retryable if there
    are no files and the source declares `missing: fail`, unless `allow_empty`.
    """
    spec = table.spec
    assert isinstance(spec, Source)
    zone = project.pipelines[table.pipeline].timezone
    path, files = list_files(project, table, interval)
    noted = intervals.deliveries(layout(project).uri(table.id, INTERVALS))
    known = tuple(intervals.replaced_by(noted, interval, table.id, zone))
    has_rows = any(d.rows_accepted for d in known)
    if not allow_empty and not has_rows:  # the gate checks an interval that has some
        check_presence(table, spec, path, files)
    print_ = landing.fingerprint(files, definition_of_deliveries(table))
    return Delivery(table, spec, interval, path, files, print_, known, tuple(noted), zone)


def check_presence(table: Table, spec: Source, path: str, files: tuple[LandedFile, ...]) -> None:
    """Raise Retryable if there are no files and the source declares that a failure."""
    if not files and spec.missing == "fail":
        raise Retryable(
            f"{table.id}: nothing was delivered at {path}",
            hint="deliver its files and run it again; with `missing: warn` it has no rows, and "
            "with --allow-empty once",
        )


@dataclass(frozen=True)
class ReadDelivery:
    """Rows of a delivery, and the delivery with the columns that it has in fact."""

    delivery: Delivery
    reading: Reading


def read_delivery(
    session: SparkSession, delivery: Delivery, before: Head | None, limits: Limits
) -> ReadDelivery:
    """Return the delivery's rows with their reasons and, if deliveries are kept, their POSITION.

    `before`: the head of their table, whose columns they then also have.
    """
    spec = delivery.spec.model_copy(update={"path": delivery.path})
    seen = look(spec, delivery.files)
    more = choose_columns(session, spec, seen.heads, columns_at(before))
    wide = spec.model_copy(update={"columns": (*spec.columns, *more.columns)})
    found = rows_of(session, wide, seen, limits)
    rows = found.rows
    if spec.time and delivery.spec.shares_files:
        # Each delivery reads all rows marked UNDATED, and replaces them in quarantine.
        at = F.col(f"`{spec.time}`").cast("timestamp")
        interval = delivery.interval
        is_inside = (at >= F.lit(interval.start)) & (at < F.lit(interval.end))
        rows = rows.where(at.isNull() | is_inside).withColumn(UNDATED, at.isNull())
    warnings = tuple(f"{delivery.table.id}: {what}" for what in more.warnings)
    reading = Reading(judge_rows(rows, delivery), (*warnings, *found.warnings))
    return ReadDelivery(
        replace(delivery, table=with_columns(delivery.table, more.columns)), reading
    )


def judge_rows(rows: DataFrame, delivery: Delivery) -> DataFrame:
    """Add the source's own objections; of deliveries that are kept, also places and conflicts."""
    spec = delivery.spec
    known = object_to_rows(rows, spec, delivery.interval)
    if not spec.keeps_deliveries:
        return known.drop(BLOCK, ROW)
    rows = place_rows(known, spec.key)
    if not spec.key or spec.change:
        return rows
    return mark_conflicts(rows, spec, Gate(delivery.table.id, spec.expect).fits)


def stored_rows(rows: DataFrame, delivery: Delivery) -> DataFrame:
    """Return accepted rows as stored: with their interval and identity."""
    spec, columns = delivery.spec, tuple(delivery.table.columns)
    known = columns
    interval = F.lit(delivery.interval.start).cast("timestamp").alias(INTERVAL)
    if spec.keeps_deliveries:
        rows = rows if OP in rows.columns else operations(rows, spec.change)
        columns = (*columns, OP)
        known = (*columns, POSITION)
    if delivery.is_of_messages:
        return rows.select(*names(known), ID, interval)
    if spec.keeps_deliveries and spec.key:
        rows = rows.groupBy(*names(columns)).agg(F.max(POSITION).alias(POSITION))
    return identify(rows.select(*names(known)), columns).select(*names(known), ID, interval)


def object_to_rows(rows: DataFrame, spec: Source, interval: Interval) -> DataFrame:
    """Add the source's own objections to the reasons of rows that were read."""
    reasons = [F.col(REASON), *_time_reasons(spec, interval)]
    if spec.change:
        reasons.append(unknown_word(spec.change))
    return rows.withColumn(REASON, F.coalesce(*reasons))


def _time_reasons(spec: Source, interval: Interval) -> list[Column]:
    if not spec.time:
        return []
    at = F.col(f"`{spec.time}`").cast("timestamp")
    latest = spec.max_ahead.after(interval.end)
    ahead = F.when(
        at > F.lit(latest),
        f"column {spec.time} is more than {spec.max_ahead} ahead of the interval",
    )
    if not spec.shares_files:
        return [ahead]
    return [ahead, F.when(at.isNull(), f"column {spec.time} is null, so it is in no interval")]


def mark_conflicts(rows: DataFrame, spec: Source, fits: str) -> DataFrame:
    """Add CONFLICT to placed rows of a source with a key; it marks rows of one key that differ.

    Rows with different values of `sequence` are not in conflict. `fits`: SQL condition for rows
    that break no other rule.
    """
    counts = F.isnull(REASON) & F.expr(fits)
    same = [*names(spec.key), F.isnull(REASON), *names(spec.sequence), F.expr(fits)]
    by = Window.partitionBy(*same)
    row = F.struct(*comparable(rows, tuple(visible(rows))))
    differ = counts & ~F.min(row).over(by).eqNullSafe(F.max(row).over(by))
    is_last = F.col(POSITION) == F.max(POSITION).over(by)
    marked = rows.withColumn(CONFLICT, F.when(differ, F.when(is_last, 2).otherwise(1)).otherwise(0))
    if spec.on_conflict != "quarantine":
        return marked
    reason = f"rows with the same key ({', '.join(spec.key)}) differ"
    return marked.withColumn(REASON, F.coalesce(REASON, F.when(F.col(CONFLICT) > 0, reason)))


IN_UTC = (NANOS, "TIMESTAMP_NTZ")


@dataclass(frozen=True)
class ExtraColumns:
    """Columns beyond the declared ones: those of the table, and those that are new to it."""

    known: tuple[ExtraColumn, ...] = ()
    new: tuple[ExtraColumn, ...] = ()

    @property
    def columns(self) -> tuple[ExtraColumn, ...]:
        return (*self.known, *self.new)

    @property
    def warnings(self) -> tuple[str, ...]:
        named = ", ".join(f"{c.name} {c.type}" for c in self.new)
        return (f"columns that `schema` lacks were added to the table: {named}",) if named else ()


def choose_columns(
    session: SparkSession, spec: Declared, heads: Sequence[FileHead], stored: StructType
) -> ExtraColumns:
    """Return the columns that the source takes of these files. One Spark job, for JSON only."""
    known = tuple(beyond(spec.types, stored))
    if not isinstance(spec, Source) or not spec.evolve or not heads:
        return ExtraColumns(known)
    if spec.format == "json":
        brought = dict.fromkeys(names_of_lines(json_lines(session, spec, heads), spec), "STRING")
    else:
        brought = _types_of_files(heads)
    have = {*spec.types, *spec.of_files, *(c.name for c in known)}
    new = (
        ExtraColumn(name=n, type=t)
        for n, t in sorted(brought.items())
        if n not in have and _may_be_taken(n)
    )
    return ExtraColumns(known, tuple(new))


def grow(lake: LakeLayout, table: Table) -> Table:
    """Add the taken columns to the table, and return it with them. Raises LostRace."""
    wide, before = with_taken_columns(lake, table), head(lake.uri(table.id))
    if before and wide.taken:
        deliveries = columns_at(head(lake.uri(table.delivered_to)))
        add_columns(before, StructType([f for f in deliveries if f.name in wide.taken]))
    return wide


def _types_of_files(heads: Sequence[FileHead]) -> dict[str, str]:
    """Return names with types; STRING if the files have none."""
    found: dict[str, str] = {}
    for one in heads:
        types = one.types or ("STRING",) * len(one.names)
        for name, type_ in zip(one.names, types, strict=True):
            if type_ and VOID not in type_:
                plain = "TIMESTAMP" if type_ in IN_UTC else type_
                both = (found.get(name, plain), plain)
                # What pandas writes: integers, or floats beside nulls.
                are_numbers = {*both} <= {*INTEGERS, "FLOAT", "DOUBLE"} and both[0] != plain
                found[name] = common(both) or ("DOUBLE" if are_numbers else both[0])
    return found


def _may_be_taken(name: str) -> bool:
    """True if a table's column may have this name."""
    try:
        return bool(check_name(name))
    except ValueError:
        return False
