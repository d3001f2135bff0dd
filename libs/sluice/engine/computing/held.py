"""Rows that a batch computes once and reads more than once: few as Arrow, many in Spark.

Both can be filtered, counted, combined with other rows, and read as a changelog.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sluice.delta.reading.local import hand, nullable, to_arrow
from sluice.engine.computing.batch_result import ChangelogRows
from sluice.engine.query.operator import names


@dataclass(frozen=True)
class RowFilter:
    """A condition on rows, in SQL and in Arrow; never null."""

    sql: str
    arrow: pc.Expression

    def __invert__(self) -> "RowFilter":
        return RowFilter(f"NOT ({self.sql})", ~self.arrow)


def is_given(column: str) -> RowFilter:
    """Return the condition that the column is not null."""
    return RowFilter(f"`{column}` IS NOT NULL", pc.field(column).is_valid())


def is_true(column: str) -> RowFilter:
    """Return the condition that the column, a boolean without nulls, is true."""
    return RowFilter(f"`{column}`", pc.field(column))


def has_elements(column: str) -> RowFilter:
    """Return the condition that the column's list is not empty."""
    return RowFilter(f"size(`{column}`) > 0", pc.list_value_length(pc.field(column)) > 0)


class Held(Protocol):
    """Rows, computed once."""

    @property
    def rows(self) -> DataFrame:
        """The rows as a DataFrame."""

    @property
    def table(self) -> pa.Table | None:
        """The same rows in this process, if they are few."""

    def where(self, condition: RowFilter) -> "Held":
        """Return the rows that meet a condition."""

    def distinct(self, columns: Sequence[str]) -> "Held":
        """Return the distinct values of these columns."""

    def beside(self, others: DataFrame) -> "Held":
        """Return these rows together with others."""

    def count(self) -> int:
        """Count the rows. Takes a Spark job if they are many."""

    def has_any(self, condition: RowFilter) -> bool:
        """True if any row meets the condition. Takes a Spark job if they are many."""

    def elements(self, column: str) -> tuple[int, frozenset[str]]:
        """Return the number of rows and the elements of their lists. Many rows take a Spark job."""

    def changelog(self, columns: Mapping[str, str]) -> ChangelogRows:
        """Return the rows as a changelog. `columns`: its columns -> columns of the rows."""


@dataclass(frozen=True)
class Here:
    """Rows in this process, few of them. `types`: Spark's types of at least their columns."""

    table: pa.Table
    session: SparkSession
    types: StructType

    @classmethod
    def of(cls, frame: DataFrame) -> "Here":
        """Compute the rows of `frame`."""
        return cls(_nullable(to_arrow(frame)), frame.sparkSession, nullable(frame.schema))

    @cached_property
    def rows(self) -> DataFrame:
        schema = StructType([self.types[name] for name in self.table.column_names])
        return hand(self.session, self.table, schema).coalesce(1)

    def where(self, condition: RowFilter) -> "Here":
        return replace(self, table=self.table.filter(condition.arrow))

    def distinct(self, columns: Sequence[str]) -> "Here":
        found = self.table.select(list(columns)).group_by(list(columns)).aggregate([])
        return replace(self, table=found)

    def beside(self, others: DataFrame) -> "Here":
        more = to_arrow(others.select(*names(tuple(self.table.column_names))))
        return replace(self, table=pa.concat_tables([self.table, more.cast(self.table.schema)]))

    def count(self) -> int:
        return int(self.table.num_rows)

    def has_any(self, condition: RowFilter) -> bool:
        return self.where(condition).count() > 0

    def elements(self, column: str) -> tuple[int, frozenset[str]]:
        return self.count(), frozenset(pc.list_flatten(self.table[column]).to_pylist())

    def changelog(self, columns: Mapping[str, str]) -> ChangelogRows:
        return pa.Table.from_pydict({name: self.table[place] for name, place in columns.items()})


@dataclass(frozen=True)
class InSpark:
    """Many rows, as Spark has them: cached, if they are read more than once."""

    rows: DataFrame
    table: None = None

    def where(self, condition: RowFilter) -> "InSpark":
        return InSpark(self.rows.where(condition.sql))

    def distinct(self, columns: Sequence[str]) -> "InSpark":
        return InSpark(self.rows.select(*names(tuple(columns))).distinct())

    def beside(self, others: DataFrame) -> "InSpark":
        return InSpark(self.rows.unionByName(others))

    def count(self) -> int:
        return self.rows.count()

    def has_any(self, condition: RowFilter) -> bool:
        return not self.rows.where(condition.sql).isEmpty()

    def elements(self, column: str) -> tuple[int, frozenset[str]]:
        named = F.array_distinct(F.flatten(F.collect_set(f"`{column}`")))
        found = self.rows.agg(F.count(F.lit(1)), named).collect()[0]
        return int(found[0]), frozenset(found[1])

    def changelog(self, columns: Mapping[str, str]) -> ChangelogRows:
        return self.rows.select(*[F.col(f"`{p}`").alias(n) for n, p in columns.items()])


def _nullable(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))
