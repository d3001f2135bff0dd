"""Rebuild of a dimension: a new full load that replaces the current table.

A source no longer has the earlier versions of a history. They are converted to the current columns,
or the rebuild is refused.
"""

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import REBUILD, Position, head_as_found
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.writing.own_commits import Committed
from sluice.dimensions.load import Loaded, load_as
from sluice.dimensions.rows import table_rows
from sluice.dimensions.source import find
from sluice.dimensions.spec import Dimension
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport, Clock
from sluice.engine.committing import Swapped, Target, swap
from sluice.engine.context import Context
from sluice.engine.query.operator import COLUMNS, CURRENT
from sluice.engine.retries import naming_faults, with_retries
from sluice.errors import HistoryLost
from sluice.limits import Limits
from sluice.spark.session import Spark


def rebuild(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, bool]:
    """Load a dimension whole; return the report, and whether the change ends the table's feed.

    Raises HistoryLost if versions would be lost, UsageError if there are no files.
    """
    full = replace(run, full_refresh=True)
    context, swapped = Context.of(project), list[Swapped]()

    def put(
        session: SparkSession,
        loaded: Loaded,
        target: Target,
        position: Position,
        clock: Clock,
    ) -> Committed:
        rows = table_rows(
            session, table, loaded.rows, _history(session, context.limits, table, target)
        )
        mine, whole = replace(position, kind=REBUILD), replace(target, keeps_position=True)
        swapped.append(swap(session, context, whole, rows, mine, clock))
        return swapped[-1].done

    def work() -> BatchReport:
        with naming_faults(table.id):
            found = find(project, table)
            return load_as(spark, context, found, full, head_as_found(found.uri), put)

    return with_retries(work), swapped[-1].ends_feed


def _history(
    session: SparkSession, limits: Limits, table: Table, target: Target
) -> DataFrame | None:
    """Return the versions that the table keeps, in the current types."""
    if target.before is None:
        return None
    before, spec = target.before, table.spec
    old = snapshot(session, target.uri, before.version, limits)
    assert isinstance(spec, Dimension)
    if CURRENT not in old.columns:
        return None
    if not spec.history:
        if closed := old.where(~F.col(CURRENT)).count():
            raise _lost(table, f"without a history, {closed} earlier versions have no place")
        return None
    if lacking := [c for c in spec.key if c not in old.columns]:
        raise _lost(table, f"its versions have no {', '.join(lacking)}, which is in the key now")
    kept = {name: type_ for name, type_ in table.columns.items() if name in old.columns}
    _check_types(table, old, kept)
    return old.select(*[F.col(f"`{c}`").cast(type_).alias(c) for c, type_ in kept.items()])


def _check_types(table: Table, old: DataFrame, kept: dict[str, str]) -> None:
    """Raise HistoryLost if a value of an earlier version does not fit the current type."""
    for name, type_ in kept.items():
        value = F.col(f"`{name}`")
        if name in COLUMNS or old.schema[name].dataType.simpleString() == type_.lower():
            continue
        if bad := old.where(value.isNotNull() & value.try_cast(type_).isNull()).count():
            raise _lost(table, f"{bad} versions have a {name} that is not a valid {type_}")


def _lost(table: Table, why: str) -> HistoryLost:
    return HistoryLost(
        f"{table.id} can't be rebuilt from its source alone: {why}",
        hint="revert the change; or declare the changed dimension under another name. "
        "Nothing was changed",
    )
