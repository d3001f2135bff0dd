"""Changes of somebody else's table as rows of the declared columns, each with what it does.

Copies of a row that came and went within a span cancel out, so a commit that rewrites a file brings
only what differs. If a row of a key comes, those that went are hidden. A row that goes keeps only
its key, if there is one: it is found by that, and its other values may be bad. A row with a null
key was never stored, so its delete is ignored.
"""

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from sluice.changes.feed_columns import CHANGE_TYPE
from sluice.changes.net import WEIGHT, summed, weighted
from sluice.declare.delivered_row import FILE, OP
from sluice.delta.log.commit_range import CommitRange
from sluice.delta.log.foreign_table import Foreign
from sluice.delta.reading.foreign_rows import columns_of, read_part
from sluice.engine.query.operator import names, union
from sluice.files.conversion import BLOCK, ROW, converted
from sluice.files.marks import comparable
from sluice.gate.rules.sql import field_name, text
from sluice.limits import Limits
from sluice.sources.spec import Source

INSERT, DELETE = "insert", "delete"


def rows_of(
    session: SparkSession, spec: Source, found: Foreign, commits: CommitRange, limits: Limits
) -> DataFrame:
    """Return the rows that a span of commits brings and takes, for the gate."""
    wanted = columns_of(found.uri, commits.upto, tuple(spec.of_files))
    parts = [read_part(session, found.uri, part, wanted, limits) for part in commits.parts]
    if not parts:
        fields = wanted.add(CHANGE_TYPE, "string")
        parts = [session.createDataFrame([], fields)]
    own = [f"{field_name(theirs)} AS `{name}`" for theirs, name in spec.of_files.items()]
    feed = union([part.selectExpr(*own, CHANGE_TYPE) for part in parts])
    rows = _netted(feed, spec, only_comes=all(part.weight > 0 for part in commits.parts))
    origin = f"{found.uri} at version {commits.upto}"
    known = rows.selectExpr(
        *(f"`{name}`" for name in spec.types),
        OP,
        f"{text(origin)} AS {FILE}",
        f"CASE WHEN {OP} = '{DELETE}' THEN 0L ELSE 1L END AS {BLOCK}",
    )
    placed = known.withColumn(ROW, F.xxhash64(*comparable(known, tuple(spec.types))))
    return converted(placed, spec, origin=origin)


def _netted(feed: DataFrame, spec: Source, *, only_comes: bool) -> DataFrame:
    """Return each row that came or went, with OP."""
    columns = tuple(spec.types)
    if only_comes:
        return feed.drop(CHANGE_TYPE).withColumn(OP, F.lit(INSERT))
    net = summed(weighted(feed, columns), columns)
    does = F.when(F.col(WEIGHT) > 0, INSERT).otherwise(DELETE)
    copies = F.explode(F.sequence(F.lit(1), F.abs(F.col(WEIGHT)).cast("int")))
    each = net.withColumn(OP, does).withColumn("_copy", copies)
    if not spec.key:
        return each
    best = F.max(WEIGHT).over(Window.partitionBy(*names(spec.key)))
    goes = F.expr(" AND ".join(f"`{name}` IS NOT NULL" for name in spec.key)) & (F.col("_best") < 0)
    kept = each.withColumn("_best", best).where((F.col(WEIGHT) > 0) | goes)
    return kept.select(*_of_keys(columns, spec), OP)


def _of_keys(columns: tuple[str, ...], spec: Source) -> Iterator[Column]:
    for name in columns:
        value = F.col(f"`{name}`")
        is_kept = name in spec.key
        yield value if is_kept else F.when(F.col(OP) == INSERT, value).alias(name)
