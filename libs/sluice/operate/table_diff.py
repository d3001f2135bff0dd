"""Difference of two versions of a table, row by row, at any places.

Rows are matched by the table's key. If either version can't be matched by it, because the key
differs or is not unique there, equal rows are matched. A changed row then counts as deleted and
inserted. A column that only one version has is null in the other. Cost: one pass over both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from sluice.changes.diff import CHANGE, diff
from sluice.changes.net import WEIGHT, between
from sluice.declare.table import Table
from sluice.delta.log.feed_size import table_size
from sluice.delta.reading.local import column_types, to_arrow
from sluice.delta.reading.spark_reads import snapshot
from sluice.engine.planning.node import Node
from sluice.engine.query.operator import is_unique, names
from sluice.language.names import RESERVED_PREFIX
from sluice.limits import Limits
from sluice.operate.verify import leniently
from sluice.read.ordered.keyed import KeyedTable
from sluice.read.samples import Sample, row_of
from sluice.read.stored.snapshot import Snapshot
from sluice.spark.session import Spark

KINDS = ("insert", "update", "delete")


@dataclass(frozen=True)
class TableVersion:
    """One version of a table at a place."""

    uri: str
    version: int


@dataclass(frozen=True)
class Difference:
    """Numbers of rows by what happened to them, and some of the rows."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    samples: tuple[Sample, ...] = ()

    @property
    def is_none(self) -> bool:
        """True if no row differs."""
        return not (self.inserted or self.updated or self.deleted)


@dataclass(frozen=True)
class Comparison:
    """Way to compare versions of one table.

    `node`: the table's node, if it is a query. Sums of floating-point numbers agree within their
    error, and columns that only affect the order of files don't count. `most`: rows to show.
    """

    table: Table
    limits: Limits
    node: Node | None = None
    most: int = 0

    def of(self, spark: Spark, old: TableVersion, new: TableVersion) -> Difference:
        """Return the difference, with up to `most` rows; small ones are compared without Spark."""
        size = table_size(old.uri, old.version) + table_size(new.uri, new.version)
        found, _ = spark.best(
            lambda session: self._found(session, old, new),
            lambda: spark.tune(small=False),
            self.limits,
            is_small=size.bytes <= self.limits.computed_here_bytes,
            size=size.bytes,
        )
        return found

    def _found(self, session: SparkSession, old: TableVersion, new: TableVersion) -> Difference:
        was, now = (snapshot(session, s.uri, s.version, self.limits) for s in (old, new))
        key, ignored = self.table.key, self.node.ignored if self.node else ()
        if not self._is_keyed(was, now):
            return self._by_rows(*_alike(was, now, ignored))
        was, now = _alike(was, now, ())
        if self.node:
            now = leniently(was, now, self.node.operator)
        changed = diff(was, now, key, ignore=ignored).persist()
        try:
            counts = _counts(changed, F.col(CHANGE))
            some = changed.select(*names(key)).limit(self.most if counts else 0)
            keys = to_arrow(some).to_pylist() if self.most and counts else []
        finally:
            changed.unpersist()
        sides = [self._opened(side) for side in (old, new)]
        rows = ([row_of(side, tuple(at.values())) for side in sides] for at in keys)
        return self._counted(counts, [Sample(*pair) for pair in rows])

    def _is_keyed(self, was: DataFrame, now: DataFrame) -> bool:
        key, before, after = self.table.key, column_types(was), column_types(now)
        is_same = all(c in before and before[c] == after.get(c) for c in key)
        return is_same and is_unique(was, key)

    def _by_rows(self, was: DataFrame, now: DataFrame) -> Difference:
        """Compare whole rows, because no key identifies them."""
        changed = between(was, now, now.columns).persist()
        try:
            kind = F.when(F.col(WEIGHT) > 0, F.lit("insert")).otherwise(F.lit("delete"))
            counts = _counts(changed, kind, F.abs(F.col(WEIGHT)))
            rows = to_arrow(changed.limit(self.most)).to_pylist() if self.most and counts else []
        finally:
            changed.unpersist()
        return self._counted(counts, [_sample(row) for row in rows])

    def _opened(self, side: TableVersion) -> KeyedTable:
        return KeyedTable(Snapshot.open(self.table.name, side.uri, side.version), self.table.key)

    def _counted(self, counts: Mapping[str, int], samples: Sequence[Sample]) -> Difference:
        inserted, updated, deleted = (counts.get(kind, 0) for kind in KINDS)
        return Difference(inserted, updated, deleted, tuple(samples))


def _counts(rows: DataFrame, kind: Column, number: Column | None = None) -> dict[str, int]:
    each = F.lit(1) if number is None else number
    sums = (
        rows.select(kind.alias("kind"), each.alias("n")).groupBy("kind").agg(F.sum("n").alias("n"))
    )
    return {row["kind"]: row["n"] for row in sums.collect()}


def _alike(was: DataFrame, now: DataFrame, without: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    """Return both versions with the same columns; those whose types differ are texts."""
    before, after = column_types(was), column_types(now)
    columns = [c for c in {**after, **before} if c not in without]

    def shaped(rows: DataFrame, own: Mapping[str, DataType], other: Mapping[str, DataType]) -> Any:
        return rows.select(*[_column(name, own, other).alias(name) for name in columns])

    return shaped(was, before, after), shaped(now, after, before)


def _column(name: str, own: Mapping[str, DataType], other: Mapping[str, DataType]) -> Column:
    if name not in own:
        return F.lit(None).cast(other[name])
    differs = name in other and other[name] != own[name]
    return F.col(f"`{name}`").cast("string") if differs else F.col(f"`{name}`")


def _sample(row: Mapping[str, Any]) -> Sample:
    shown = {n: v for n, v in row.items() if n != WEIGHT and not n.startswith(RESERVED_PREFIX)}
    return Sample(None, shown) if row[WEIGHT] > 0 else Sample(shown, None)
