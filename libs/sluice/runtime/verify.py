"""Proof on demand: a view recomputed at the versions in its position, and compared with its rows.

Of every table, the invariants of its log, feed and deliveries are checked as well.

The recompute uses the same defining query as the batches, over whole inputs. A lookup whose rows
keep the dimension versions of the batch that joined them is recomputed batch by batch.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.diff import CHANGE, diff
from sluice.errors import UsageError
from sluice.operators.lookup import BATCH, LookupJoin
from sluice.operators.operator import Operator, within
from sluice.runtime.computation import Computation
from sluice.runtime.computing import expected
from sluice.runtime.data_faults import naming_data_faults
from sluice.runtime.evolution import grown
from sluice.runtime.horizon import recorded_horizon
from sluice.runtime.invariants import faults
from sluice.runtime.nodes import Node, nodes_of
from sluice.runtime.plan import BatchPlan, Strategy
from sluice.runtime.rows import references_at, snapshots_at
from sluice.runtime.session import Spark
from sluice.specs.project import Project
from sluice.specs.table import Table
from sluice.storage.invariants import row_count
from sluice.storage.lake import layout
from sluice.storage.position import REBUILD, Head, Pin, Position, head, positions
from sluice.storage.table import snapshot

SAMPLES = 20
REPEATED = "repeated"


@dataclass(frozen=True)
class Verdict:
    """One table against its query; `differences` are up to 20 rows with how they differ.

    `faults`: what else does not hold of it, in words.
    """

    table: str
    version: int
    rows: int
    missing: int
    extra: int
    different: int
    differences: tuple[Mapping[str, object], ...]
    faults: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether the table is what its query gives."""
        return not (self.missing or self.extra or self.different)

    @property
    def is_sound(self) -> bool:
        """Whether nothing at all is wrong with it."""
        return self.is_equal and not self.faults


def verify(spark: Spark, project: Project, table: Table) -> list[Verdict]:
    """Verdicts of the table and of the internal tables behind it."""
    nodes = {node.id: node for node in nodes_of(grown(project, table), project.graph)}
    verdicts = {name: _verify(spark, project, node) for name, node in nodes.items()}
    for table_id, found in faults(project, table).items():
        verdict = verdicts.get(table_id) or _as_delivered(project, table_id)
        verdicts[table_id] = replace(verdict, faults=found)
    return list(verdicts.values())


def _as_delivered(project: Project, table_id: str) -> Verdict:
    """Of a table that no query gives: it is what was delivered."""
    uri = layout(project).uri(table_id)
    at = head(uri)
    assert at is not None
    return Verdict(table_id, at.version, row_count(uri, at.version), 0, 0, 0, ())


def _verify(spark: Spark, project: Project, node: Node) -> Verdict:
    with naming_data_faults(node.id, node.operator.totals):
        return _compared(spark, project, node)


def _compared(spark: Spark, project: Project, node: Node) -> Verdict:
    uri = layout(project).uri(node.id)
    at = head(uri)
    if at is None or at.position is None or not at.position.inputs:
        raise UsageError(
            f"{node.id} has not been built yet", hint=f"run `sluice advance {node.table.name}`"
        )
    session = spark.tune(small=False)
    rows = snapshot(session, uri, at.version, project.limits)
    recomputed = _expected(session, project, node, at, rows)
    expected = _leniently(rows, node.operator.remembered(rows, recomputed), node.operator)
    key, visible = node.operator.key, rows.select(*_columns(expected.columns))
    repeated = _repeated(visible, key)
    differs = diff(rows, expected, key, ignore=node.ignored).unionByName(repeated).persist()
    try:
        counted = {r[CHANGE]: r["n"] for r in _counts(differs).collect()}
        samples = [r.asDict(recursive=True) for r in differs.limit(SAMPLES).collect()]
    finally:
        differs.unpersist()
    return Verdict(
        node.id,
        at.version,
        rows.count(),
        missing=counted.get("insert", 0),
        extra=counted.get("delete", 0) + counted.get(REPEATED, 0),
        different=counted.get("update", 0),
        differences=tuple(samples),
    )


def _repeated(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Rows whose key another one has already, as changes of their own: a diff sees one of them."""
    row = F.struct(*_columns(rows.columns))
    same = rows.groupBy(*_columns(key)).agg(F.collect_list(row).alias("_same"))
    others = same.select(F.posexplode("_same").alias("nth", "col")).where("nth > 0")
    return others.select("col.*", F.lit(REPEATED).alias(CHANGE))


def _counts(differs: DataFrame) -> DataFrame:
    return differs.groupBy(CHANGE).agg(F.count(F.lit(1)).alias("n"))


def _leniently(rows: DataFrame, expected: DataFrame, operator: Operator) -> DataFrame:
    """What is expected, with the table's own values where they agree with it within their error."""
    agreements = operator.agreements(expected.schema)
    if not agreements:
        return expected

    def column(name: str) -> Column:
        found, wanted = F.col(f"r.`{name}`"), F.col(f"p.`{name}`")
        if name not in agreements:
            return wanted
        return F.when(agreements[name](found, wanted), found).otherwise(wanted).alias(name)

    both = expected.alias("p").join(rows.alias("r"), _same(operator.key), "left")
    return both.select(*[column(name) for name in expected.columns])


def _expected(
    session: SparkSession, project: Project, node: Node, at: Head, rows: DataFrame
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
    operator = node.operator
    if isinstance(operator, LookupJoin) and not operator.follows_dimensions:
        return _batch_by_batch(session, project, plan, operator, rows)
    return expected(Computation(session, project, plan, 0, recorded_horizon(plan)), rows)


def _batch_by_batch(
    session: SparkSession,
    project: Project,
    plan: BatchPlan,
    operator: LookupJoin,
    rows: DataFrame,
) -> DataFrame:
    """Each fact with the dimensions of its batch.

    Of a fact without a row nobody wrote down the batch: it is missing only if it finds its
    dimension rows whichever batch it came with.
    """
    snapshots = snapshots_at(session, project, operator, plan.pins)
    prepared = operator.prepare(operator.facts.id, snapshots[operator.facts.id])
    joined = _columns(operator.key)
    absent = prepared.alias("p").join(
        rows.select(*joined).alias("r"), _same(operator.key), "left_anti"
    )
    present, missing = [], []
    for references, batches in _batches_by_references(plan.uri).items():
        at = replace(plan, references=dict(references))
        dimensions = references_at(session, project, operator, at)
        mine = rows.where(reduce(Column.__or__, map(_of_batch, batches))).select(*joined)
        found = within(prepared, mine, operator.key)
        present.append(operator.combine({operator.facts.id: found}, dimensions))
        missing.append(operator.combine({operator.facts.id: absent}, dimensions))
    always = _in_each(missing, operator.key)
    expected = reduce(DataFrame.unionByName, [*present, within(missing[0], always, operator.key)])
    return expected.withColumn(BATCH, F.lit(None).cast("bigint"))


def _in_each(parts: list[DataFrame], key: tuple[str, ...]) -> DataFrame:
    """The keys that all of the parts have."""
    every = reduce(DataFrame.unionByName, (part.select(*_columns(key)) for part in parts))
    counted = every.groupBy(*_columns(key)).agg(F.count(F.lit(1)).alias("_n"))
    return counted.where(F.col("_n") == len(parts))


def _columns(names: Sequence[str]) -> list[Column]:
    return [F.col(f"`{c}`") for c in names]


def _same(key: tuple[str, ...]) -> Column:
    pairs = [F.col(f"p.`{c}`").eqNullSafe(F.col(f"r.`{c}`")) for c in key]
    return reduce(lambda a, b: a & b, pairs)


def _batches_by_references(uri: str) -> dict[tuple[tuple[str, Pin], ...], list[Position]]:
    """The batches since the last rebuild, which has joined anew all rows of those before it."""
    found: dict[tuple[tuple[str, Pin], ...], list[Position]] = defaultdict(list)
    for _, position in positions(uri):
        if position.references:
            found[tuple(sorted(position.references.items(), key=lambda i: i[0]))].append(position)
        if position.kind == REBUILD:
            break
    return found


def _of_batch(position: Position) -> Column:
    """The rows that a batch joined; a rebuild, also those that it found to be right already."""
    number = F.col(BATCH)
    return number <= position.batch if position.kind == REBUILD else number == position.batch
