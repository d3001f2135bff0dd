"""Stored rows and rows in memory as relations; a large one can be narrowed before it is read."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import types as T

from sluice.interpreter.expressions.compiling import RelationColumn
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.relations.relation import Relation
from sluice.interpreter.values.arrow_columns import held
from sluice.interpreter.values.arrow_conversion import Values, to_arrow
from sluice.interpreter.values.column_batch import ColumnBatch
from sluice.interpreter.values.value_types import plain

NARROWED_ROWS = 1_000  # smaller tables are read whole
# Statistics of texts are views in files of delta-rs; Arrow fails to compare these with plain texts.
LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
UNNARROWED = (T.ArrayType, T.StructType, T.MapType, T.DoubleType, T.FloatType)


def of_dataset(stored: ds.Dataset, schema: T.StructType, most: int) -> Relation:
    """Return stored rows as a relation that can be narrowed; more than `most` are left to Spark."""
    columns = tuple(RelationColumn(f.name, plain(f.dataType)) for f in schema.fields)
    return _where(stored, columns, most, None)


def _where(
    stored: ds.Dataset, columns: tuple[RelationColumn, ...], most: int, met: pc.Expression | None
) -> Relation:
    """Return the stored rows that meet a condition; each narrowing adds another one."""

    def read() -> ColumnBatch:
        return _few(stored.to_table(columns=[c.name for c in columns], filter=met), columns, most)

    def narrow(at: int, values: Sequence[Any]) -> Relation | None:
        if isinstance(columns[at].type, UNNARROWED):
            return None
        given = to_arrow([v for v in values if v is not None], columns[at].type)
        field = pc.field(columns[at].name)
        other = LARGE.get(given.type)
        where = field.cast(other).isin(given.cast(other)) if other else field.isin(given)
        if None in values:
            where |= field.is_null()
        return _where(stored, columns, most, where if met is None else met & where)

    return Relation(columns, read, narrow)


def of_arrow(rows: pa.Table, schema: T.StructType, most: int) -> Relation:
    """Return rows in memory as a relation; a large one can be narrowed, too."""
    if rows.num_rows > NARROWED_ROWS:
        return replace(of_dataset(ds.dataset(rows), schema, most), stored=rows)
    columns = tuple(RelationColumn(f.name, plain(f.dataType)) for f in schema.fields)
    return Relation(columns, lambda: _few(rows, columns, most), stored=rows)


def _few(rows: pa.Table, columns: Sequence[RelationColumn], most: int) -> ColumnBatch:
    """Return rows; a column is converted when it is first read."""
    if rows.num_rows > most:
        raise NotHere(f"{rows.num_rows:,} rows of a table")

    later: dict[Hashable, Callable[[], Values]] = {
        i: partial(held, rows.column(i), c.type) for i, c in enumerate(columns)
    }
    return ColumnBatch(rows.num_rows, {}, later)
