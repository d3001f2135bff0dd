"""Rows of a batch: computed once and read again, picked from large tables, or bounded for a scan.

Rows that a batch reads more than once are computed once: few are kept as Arrow, many in Spark. Both
can be filtered, counted, combined with other rows, and read as a changelog.

A batch that touches some thousand groups needs few rows of tables that Spark would scan for
seconds. If the columns that name a group are plain columns of an exact type, their values pick
these rows in this process. The result may hold rows of other groups; the operator leaves them out.

If a table's groups are in few files each (keys that grow with time, clustered tables), literal
bounds of the touched groups let a scan skip most files by their statistics. The bounds take a small
Spark job or two, which pays off only before a large scan.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, DecimalType, IntegralType, StringType, StructType

from sluice.changes import balance
from sluice.delta.reading.local import hand_as_stored, hand_over, nullable, to_arrow
from sluice.delta.reading.searching import SearchedVersion
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.writing.merge import extremes
from sluice.engine.batch_plan import BatchPlan, ChangelogRows, Context
from sluice.engine.operator import InputRows, Operator, names
from sluice.language.types import INTEGERS, base_name


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


@dataclass(frozen=True)
class Here:
    """Rows in this process, few of them. `types`: Spark's types of at least their columns.

    What is done with them, `InSpark` does with many, at the cost of a Spark job where it counts.
    """

    table: pa.Table
    session: SparkSession
    types: StructType

    @classmethod
    def of(cls, frame: DataFrame) -> "Here":
        """Compute the rows of `frame`."""
        rows = to_arrow(frame)
        fields = [field.with_nullable(True) for field in rows.schema]
        return cls(rows.cast(pa.schema(fields)), frame.sparkSession, nullable(frame.schema))

    @cached_property
    def rows(self) -> DataFrame:
        schema = StructType([self.types[name] for name in self.table.column_names])
        return hand_over(self.session, self.table, schema).coalesce(1)

    def where(self, condition: RowFilter) -> "Here":
        """Return the rows that meet a condition."""
        return replace(self, table=self.table.filter(condition.arrow))

    def distinct(self, columns: Sequence[str]) -> "Here":
        """Return the distinct values of these columns."""
        found = self.table.select(list(columns)).group_by(list(columns)).aggregate([])
        return replace(self, table=found)

    def beside(self, others: DataFrame) -> "Here":
        """Return these rows together with others."""
        more = to_arrow(others.select(*names(tuple(self.table.column_names))))
        return replace(self, table=pa.concat_tables([self.table, more.cast(self.table.schema)]))

    def count(self) -> int:
        return int(self.table.num_rows)

    def has_any(self, condition: RowFilter) -> bool:
        return self.where(condition).count() > 0

    def elements(self, column: str) -> tuple[int, frozenset[str]]:
        """Return the number of rows, and the elements of their lists."""
        return self.count(), frozenset(pc.list_flatten(self.table[column]).to_pylist())

    def changelog(self, columns: Mapping[str, str]) -> ChangelogRows:
        """Return the rows as a changelog. `columns`: its columns -> columns of the rows."""
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


Held = Here | InSpark  # rows that were computed once
GroupColumns = Mapping[str, str]  # columns of a table -> those of the group with the same values


@dataclass(frozen=True)
class Picked:
    """Touched groups, and rows that include all of theirs: of the inputs and of the table."""

    touched: DataFrame
    inputs: InputRows
    current: DataFrame


def pick(
    context: Context, plan: BatchPlan, touched: DataFrame, operator: Operator
) -> Picked | None:
    """Pick the rows of the touched groups; None if no table is large, or rows may be many.

    One small Spark job finds the groups.
    """
    inputs = {i: _search(context, plan, i, operator) for i in operator.inputs}
    before = plan.before
    assert before is not None
    current = SearchedVersion(plan.uri, before.version, context.limits)
    named = {i: operator.map_to_group(i) for i in operator.inputs}
    if not any(p.is_large for p in (*inputs.values(), current)) or not all(named.values()):
        return None
    most = context.limits.handed_rows
    groups = to_arrow(touched.limit(most + 1))
    if groups.num_rows > most:
        return None
    reads = {i: _rows(searched, groups, named[i], touched) for i, searched in inputs.items()}
    own = _rows(current, groups, [{c: c for c in operator.group}], touched)
    found = {i: rows for i, rows in reads.items() if rows is not None}
    if own is None or len(found) < len(reads):
        return None
    few = touched.sparkSession.createDataFrame(groups, touched.schema)
    return Picked(few, found, own)


def picked_of(
    context: Context, plan: BatchPlan, touched: DataFrame, operator: Operator, input_id: str
) -> DataFrame | None:
    """Pick the touched groups' rows of one input, like `pick`.

    None if it is not large, or groups are many.
    """
    searched = _search(context, plan, input_id, operator)
    return _pick_of(searched, operator.map_to_group(input_id), touched)


def picked_own(
    context: Context, plan: BatchPlan, touched: DataFrame, operator: Operator
) -> DataFrame | None:
    """Pick the touched groups' rows of the table itself, like `pick`.

    None if it is not large, or its feeds or groups are many.
    """
    rows, before = plan.size.rows, plan.before
    if before is None or rows is None or rows > context.limits.handed_rows:
        return None
    current = SearchedVersion(plan.uri, before.version, context.limits)
    return _pick_of(current, [{column: column for column in operator.group}], touched)


def _pick_of(
    searched: SearchedVersion, named: Sequence[GroupColumns], touched: DataFrame
) -> DataFrame | None:
    if not searched.is_large or not all(named) or not named:
        return None
    most = searched.limits.handed_rows
    groups = to_arrow(touched.limit(most + 1))
    return None if groups.num_rows > most else _rows(searched, groups, named, touched)


def _search(
    context: Context, plan: BatchPlan, input_id: str, operator: Operator
) -> SearchedVersion:
    uri, version = context.lake.uri(input_id), plan.pins[input_id].version
    return SearchedVersion(uri, version, context.limits, operator.columns(input_id))


def _rows(
    searched: SearchedVersion, groups: pa.Table, named: Iterable[GroupColumns], touched: DataFrame
) -> DataFrame | None:
    """Return the rows of a table that may be of the groups; all of them if there are few."""
    session = touched.sparkSession
    if not searched.is_large:
        whole = snapshot(session, searched.uri, searched.version, searched.limits)
        return whole.select(*names(tuple(searched.columns))) if searched.columns else whole
    wanted = [{c: groups[group] for c, group in columns.items()} for columns in named]
    rows = searched.find_rows(wanted)
    return None if rows is None else hand_as_stored(session, searched.uri, searched.version, rows)


NAMED_VALUES = 1_000  # that a scan gets in a list
NAMED_GROUPS = 64  # of more, a scan gets only the bounds
_ORDERED = (IntegralType, DecimalType, DateType, StringType)


def bounds_of(touched: DataFrame, group: tuple[str, ...]) -> Column | None:
    """Return a condition on the group columns that every touched group meets; None if unknown.

    A few groups are listed one by one, so that each excludes files separately.
    """
    schema = touched.schema
    columns = [c for c in group if is_bounded(schema[c].dataType)]
    if not columns:
        return None
    few = touched.select(*[f"`{c}`" for c in columns]).distinct().limit(NAMED_GROUPS + 1).collect()
    if len(few) <= NAMED_GROUPS:
        return balance(Column.__or__, [F.lit(False), *map(_exactly, few)])
    wanted = (extremes(c).alias(f"b{i}") for i, c in enumerate(columns))
    found = touched.agg(*wanted).collect()[0]
    return reduce(Column.__and__, [_within(c, found[f"b{i}"]) for i, c in enumerate(columns)])


def is_bounded(type_: DataType) -> bool:
    """True if Delta keeps statistics of the type that are exact in any time zone."""
    return isinstance(type_, _ORDERED)


def has_bounds(type_: str) -> bool:
    """True if `is_bounded` is, for a type as it is declared."""
    return base_name(type_) in (*INTEGERS, "DECIMAL", "DATE", "STRING")


def _exactly(group: Row) -> Column:
    values = group.asDict().items()
    same = [F.col(f"`{c}`").isNull() if v is None else F.col(f"`{c}`") == v for c, v in values]
    return reduce(Column.__and__, same)


def _within(name: str, bounds: Row) -> Column:
    column = F.col(f"`{name}`")
    if bounds.least is None:
        return column.isNull() if bounds.has_null else F.expr("false")
    inside = (column >= F.lit(bounds.least)) & (column <= F.lit(bounds.most))
    return inside | column.isNull() if bounds.has_null else inside


def few_of(rows: DataFrame, columns: Mapping[str, Column]) -> Column | None:
    """Return a condition that the values of `rows` meet, a list per column; None unless few.

    `columns`: name in `rows` -> column to compare. Takes one small Spark job.
    """
    found = rows.select(*columns).distinct().limit(NAMED_VALUES + 1).collect()
    if len(found) > NAMED_VALUES:
        return None
    listed = {
        name: sorted({row[name] for row in found if row[name] is not None}) for name in columns
    }
    if any(len(values) == 0 for values in listed.values()):
        return F.expr("false")
    return reduce(Column.__and__, [columns[name].isin(values) for name, values in listed.items()])
