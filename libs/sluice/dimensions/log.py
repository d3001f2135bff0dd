"""State of a log of changes, kept so that each of its files is read once.

`<dimension>__state` has the last row of each key, deletes among them, and the file that it is from.
Rows of new files are merged with the state's rows of their keys, in the order that reading all
files at once would give. Only these keys can change in the dimension's own table.
"""

import uuid
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes.diff import diff
from sluice.declare.meaning.definition import definition, meaning
from sluice.declare.table import Table
from sluice.delta.log.feed_size import FeedSize, table_size
from sluice.delta.log.position import Head, Pin, Pins, Position, head_as_found
from sluice.delta.reading.spark_reads import snapshot
from sluice.dimensions.source import LandedDimension, PendingFiles
from sluice.dimensions.wanted import ORIGIN, columns_of, last, standing
from sluice.engine.batch_report import Clock
from sluice.engine.committing.swap import swap
from sluice.engine.committing.writing import Target, write
from sluice.engine.computing.pruning import bounds_of
from sluice.engine.context import Context
from sluice.engine.query.operator import names, within
from sluice.files.marks import OP, POSITION
from sluice.files.operations import operations
from sluice.limits import Limits


@dataclass(frozen=True)
class Loaded:
    """Rows that a dimension should have by its source; only of the keys `touched`, if given.

    `made_from`: the pins that the table's position should name.
    """

    rows: DataFrame
    touched: DataFrame | None = None
    made_from: Pins = field(default_factory=dict)


def position_of(table: Table, before: Head | None, run: str) -> Position:
    """Return the position of a load's commit to a table whose head is `before`."""
    batch = before.next_batch if before else 1
    made, meant = definition(table), meaning(table)
    return Position(batch, uuid.uuid4().hex, "load", made, run=run, meaning=meant)


def merged(
    session: SparkSession,
    context: Context,
    landed: LandedDimension,
    due: PendingFiles,
    accepted: DataFrame,
    run: str,
    clock: Clock,
) -> Loaded:
    """Commit the state after new rows, and return its rows without deletes. Raises LostRace."""
    spec = landed.spec
    columns = (*columns_of(landed.table, spec), OP, ORIGIN)
    fresh = operations(accepted, spec.change).select(*names((*columns, POSITION)))
    before = due.state or head_as_found(landed.state_uri)
    position = position_of(landed.table, before, run)
    target = Target(landed.state_uri, spec.identity, before, FeedSize(due.bytes, rows=None))
    if due.state is None:
        touched, rows = None, last(fresh, spec).select(*names(columns))
        done = swap(session, context, target, rows, position, clock).done
    else:
        touched = fresh.select(*names(spec.key)).distinct()
        old = rows_of_keys(session, context.limits, due.state, touched, spec.key)
        known = old.withColumn(POSITION, F.lit(0).cast("bigint")).unionByName(fresh)
        rows = last(known, spec).select(*names(columns))
        changelog = diff(old, rows, spec.identity)
        done = write(session, context, target, changelog, position, clock)
    at = head_as_found(landed.state_uri)
    made_from = {landed.state_id: Pin(at.table, done.version)} if at else {}
    return Loaded(standing(rows, landed.table), touched, made_from)


def rows_of_keys(
    session: SparkSession, limits: Limits, at: Head, keys: DataFrame, key: tuple[str, ...]
) -> DataFrame:
    """Return the rows of a table that have one of these keys."""
    rows = snapshot(session, at.uri, at.version, limits)
    is_large = table_size(at.uri, at.version).bytes > limits.read_here_bytes
    bounds = bounds_of(keys, key, limits) if is_large else None
    return within(rows if bounds is None else rows.where(bounds), keys, key)
