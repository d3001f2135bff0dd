"""Proof on demand: a view is recomputed at the versions in its position, and compared.

The recompute uses the same defining query as the batches, over whole inputs. The invariants of
every table's log, feed and deliveries are checked as well.

Invariants of a project's tables, which hold whatever has happened; checked without Spark.

    1  a view equals its query at the versions in its position      `sluice.operate.verify`
    2  its change feed, folded from the beginning, gives its rows   `faults`
    3  the versions that it records never go back and never skip    `faults`
    4  a rerun of a finished run adds no version                    `tests/crash`
    5  intervals in any order, split or repeated, end in the same   `tests/crash`
    6  rows read = rows accepted + rows quarantined                 `faults`

`sluice verify` reports 1, 2, 3 and 6 of a lake as it is; 4 and 5 compare lakes, or one lake at
different times.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes import CHANGE, diff
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.intervals import deliveries
from sluice.delta.log.continuity import check_definition
from sluice.delta.log.files import FeedSize, table_size
from sluice.delta.log.opened import exists
from sluice.delta.log.position import Head, head
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.upkeep.table_invariants import (
    count_faults,
    feed_faults,
    position_faults,
    row_count,
    rows_by,
)
from sluice.engine.batch import recorded_horizon
from sluice.engine.batch_plan import BatchPlan, Context, Strategy
from sluice.engine.operator import Operator, names, same
from sluice.engine.plan import Node, nodes_of, with_taken_columns
from sluice.engine.retries import naming_data_faults
from sluice.errors import UsageError
from sluice.language.names import INTERVAL, INTERVALS, Row
from sluice.operate.maintain import kept_in
from sluice.spark.engine import too_large
from sluice.spark.session import Spark


def faults(project: Project, table: Table) -> dict[str, tuple[str, ...]]:
    """Return the faults of each built Delta table that holds the table's rows."""
    return {
        kept.table: (
            *position_faults(kept.uri),
            *feed_faults(kept.uri),
            *_count_faults(project, table, kept.table),
        )
        for kept in kept_in(table, project)
        if exists(kept.uri)
    }


def _count_faults(project: Project, table: Table, table_id: str) -> Iterator[str]:
    """Yield the faults that the notes of deliveries show in the table that they went to."""
    uri, spec = layout(project).uri(table_id), table.spec
    noted = deliveries(layout(project).uri(table.id, INTERVALS))
    if spec.is_by_interval or spec.is_followed:
        if table_id == table.delivered_to:
            stored: Mapping[object, int] = rows_by(uri, INTERVAL)
            yield from count_faults(noted, stored, repeats=bool(spec.delivered_beside))
    elif table_id == table.id:
        yield from count_faults(noted)


SAMPLES = 20
REPEATED = "repeated"


@dataclass(frozen=True)
class Verification:
    """One table against its query; `differences`: up to 20 rows, and how they differ.

    `faults`: what else is wrong with it, in words. `engine`: what recomputed it, as in a batch's
    report.
    """

    table: str
    version: int
    rows: int
    missing: int
    extra: int
    different: int
    differences: tuple[Row, ...]
    faults: tuple[str, ...] = ()
    engine: str = ""

    @property
    def is_equal(self) -> bool:
        """True if the table equals its query's result."""
        return not (self.missing or self.extra or self.different)

    @property
    def is_sound(self) -> bool:
        """True if nothing at all is wrong with the table."""
        return self.is_equal and not self.faults


def verify(spark: Spark, project: Project, table: Table) -> list[Verification]:
    """Return the verdicts of the table and of the internal tables behind it.

    Small tables are recomputed in this process, like small rebuilds. Raises UsageError for a table
    that was not built yet, and ConfigError for one that waits for a rebuild.
    """
    context = Context.of(project)
    nodes = {
        node.id: node for node in nodes_of(with_taken_columns(context.lake, table), context.graph)
    }
    verdicts = {name: _verify(spark, context, node) for name, node in nodes.items()}
    for table_id, found in faults(project, table).items():
        verdict = verdicts.get(table_id) or _as_delivered(context, table_id)
        verdicts[table_id] = replace(verdict, faults=found)
    return list(verdicts.values())


def _as_delivered(context: Context, table_id: str) -> Verification:
    """Return the verdict of a table without a query: its rows are right as they were delivered."""
    uri = context.lake.uri(table_id)
    at = head(uri)
    assert at is not None
    return Verification(table_id, at.version, row_count(uri, at.version), 0, 0, 0, ())


def _verify(spark: Spark, context: Context, node: Node) -> Verification:
    at = head(context.lake.uri(node.id))
    if at is None or at.position is None or not at.position.inputs:
        raise UsageError(
            f"{node.id} has not been built yet", hint=f"run `sluice advance {node.table.name}`"
        )
    check_definition(node.table, at)
    pins = {**at.position.references, **at.position.inputs}
    read = {context.lake.uri(name): pin.version for name, pin in pins.items()}
    size = sum((table_size(*one) for one in {**read, at.uri: at.version}.items()), FeedSize())
    limits = context.limits.for_weight(node.operator.weight)
    with naming_data_faults(node.id, node.operator.totals):
        verdict, engine = spark.best(
            lambda session: _compare(session, context, node, at),
            size.bytes,
            limits,
            why=too_large(size.bytes, limits.computed_here_bytes),
            what=f"a recompute of {node.id}",
        )
    return replace(verdict, engine=engine)


def _compare(session: SparkSession, context: Context, node: Node, at: Head) -> Verification:
    rows = snapshot(session, at.uri, at.version, context.limits)
    recomputed = _recompute(session, context, node, at, rows)
    expected = leniently(rows, node.operator.keep_groups(rows, recomputed), node.operator)
    key, visible = node.operator.key, rows.select(*names(tuple(expected.columns)))
    repeated = _find_repeated(visible, key)
    differs = diff(rows, expected, key, ignore=node.ignored).unionByName(repeated).persist()
    try:
        counts = differs.groupBy(CHANGE).agg(F.count(F.lit(1)).alias("n")).collect()
        shown = differs.limit(SAMPLES).collect() if counts else []
    finally:
        differs.unpersist()
    counted = {row[CHANGE]: row["n"] for row in counts}
    return Verification(
        node.id,
        at.version,
        row_count(at.uri, at.version),
        missing=counted.get("insert", 0),
        extra=counted.get("delete", 0) + counted.get(REPEATED, 0),
        different=counted.get("update", 0),
        differences=tuple(row.asDict(recursive=True) for row in shown),
    )


def _find_repeated(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Return rows that repeat another row's key, as changes, because a diff sees only one."""
    row = F.struct(*names(tuple(rows.columns)))
    alike = rows.groupBy(*names(key)).agg(F.collect_list(row).alias("_same"))
    others = alike.select(F.posexplode("_same").alias("nth", "col")).where("nth > 0")
    return others.select("col.*", F.lit(REPEATED).alias(CHANGE))


def leniently(rows: DataFrame, expected: DataFrame, operator: Operator) -> DataFrame:
    """Return the expected rows, with the table's values where both agree within their error."""
    agreements = operator.agreements(expected.schema)
    if not agreements:
        return expected

    def column(name: str) -> Column:
        found, wanted = F.col(f"r.`{name}`"), F.col(f"p.`{name}`")
        if name not in agreements:
            return wanted
        return F.when(agreements[name](found, wanted), found).otherwise(wanted).alias(name)

    both = expected.alias("p").join(rows.alias("r"), same("p", "r", operator.key), "left")
    return both.select(*[column(name) for name in expected.columns])


def _recompute(
    session: SparkSession, context: Context, node: Node, at: Head, rows: DataFrame
) -> DataFrame:
    assert at.position is not None
    plan = BatchPlan(
        node,
        at.uri,
        at,
        Strategy.BUILD,
        "verify",
        pins=at.position.inputs,
        references=at.position.references,
    )
    return node.batch(context, session, plan, 0, recorded_horizon(plan)).recompute_table(rows)
