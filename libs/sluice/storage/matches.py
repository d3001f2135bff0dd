"""The rows of large tables that a few others match, found in this process before Spark joins them.

A batch of some thousand facts meets a small part of a large dimension, and a changed dimension row
few of many facts. To look for those here takes tens of milliseconds, where sending or scanning the
whole by Spark takes seconds. What is found may be too much, never too little: the join itself is
Spark's. Values are told apart by plain equality, so only those of exact types are looked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from pyspark.sql.types import StructType

from sluice.limits import Limits
from sluice.storage.feed_size import size_of
from sluice.storage.local import plain, spark_schema

EXACT = (
    *(pa.types.is_integer, pa.types.is_string, pa.types.is_boolean),
    *(pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal),
)
Values = Mapping[str, pa.ChunkedArray]  # of each column, those that are looked for


@dataclass(frozen=True)
class Place:
    """One version of a table, and the columns that are wanted of it; none: all of them."""

    uri: str
    version: int
    limits: Limits
    columns: Sequence[str] = ()

    @property
    def is_large(self) -> bool:
        """Whether Spark would scan it; smaller tables are read here in any case."""
        return self._bytes > self.limits.read_here_bytes

    @property
    def types(self) -> StructType:
        """The columns of the table as Spark has them."""
        return spark_schema(self._table)

    @cached_property
    def _table(self) -> DeltaTable:
        return DeltaTable(self.uri, version=self.version)

    @cached_property
    def _bytes(self) -> int:
        return size_of(self._table).bytes

    def rows(self, wanted: Iterable[Values]) -> pa.Table | None:
        """The rows whose values are all among those of one of `wanted`.

        None where they can't be told, or are too many.
        """
        if self._bytes > self.limits.searched_bytes:
            return None
        wanted = list(wanted)
        dataset = _dataset(self._table, self.uri, wanted)
        where = _any_of([_test(dataset.schema, values) for values in wanted])
        if where is None:
            return None
        near = _any_of([_test(dataset.schema, _compared(values)) for values in wanted])
        is_near = all(len(_compared(values)) == len(values) for values in wanted)
        columns = list(self.columns or dataset.schema.names)
        schema = pa.schema([dataset.schema.field(name) for name in columns])
        pages, count = [schema.empty_table()], 0
        for batch in dataset.to_batches(columns=columns, filter=near):
            if batch.num_rows:
                page = plain(pa.Table.from_batches([batch]))
                pages.append(page if is_near else page.filter(where))
                count += pages[-1].num_rows
            if count > self.limits.matched_rows:
                return None
        return plain(pa.concat_tables(pages))


def _dataset(table: DeltaTable, uri: str, wanted: Sequence[Values]) -> ds.FileSystemDataset:
    """Its files that may have what is wanted, told apart by their partitions and whole numbers.

    What else the log says can't be compared here. Local files are read without a detour through
    Python.
    """
    local = None if "://" in uri else SubTreeFileSystem(uri, LocalFileSystem())
    found, parts = table.to_pyarrow_dataset(filesystem=local), table.metadata().partition_columns
    far = _files_far(table, wanted)
    fragments = [
        file.format.make_fragment(file.path, file.filesystem, _partition(file, parts))
        for file in found.get_fragments()
        if file.path.lstrip("/") not in far
    ]
    schema = plain(found.schema.empty_table()).schema
    return ds.FileSystemDataset(fragments, schema, found.format, found.filesystem)


def _files_far(table: DeltaTable, wanted: Sequence[Values]) -> set[str]:
    """The files whose least and greatest whole numbers leave out all that is wanted."""
    spans = [_spans(values) for values in wanted]
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return {f["path"] for f in files if not any(_meets(f, of_one) for of_one in spans)}


def _spans(values: Values) -> Mapping[str, tuple[int, int]]:
    """Of each column of whole numbers the least and the greatest that are looked for."""
    whole = {name: v for name, v in values.items() if pa.types.is_integer(v.type)}
    found = {n: pc.min_max(v).as_py() for n, v in whole.items() if not v.null_count and len(v)}
    return {name: (span["min"], span["max"]) for name, span in found.items()}


def _meets(file: Mapping[str, Any], spans: Mapping[str, tuple[int, int]]) -> bool:
    """Whether each column has values within its span, as far as is known."""
    for name, (least, most) in spans.items():
        first, last = file.get(f"min.{name}"), file.get(f"max.{name}")
        if first is not None and last is not None and (first > most or last < least):
            return False
    return True


def _partition(file: ds.ParquetFileFragment, parts: Sequence[str]) -> pc.Expression:
    known = ds.get_partition_keys(file.partition_expression)
    values = {name: value for name, value in known.items() if name in parts}
    tests = [pc.field(n).is_null() if v is None else pc.field(n) == v for n, v in values.items()]
    return reduce(pc.Expression.__and__, tests, pc.scalar(True))


def _compared(values: Values) -> Values:
    """Without texts: files of delta-rs have them in a type that a scan does not compare."""
    return {name: some for name, some in values.items() if not pa.types.is_string(some.type)}


def _any_of(tests: Sequence[pc.Expression | None]) -> pc.Expression | None:
    """None if one of them can't be told."""
    told = [test for test in tests if test is not None]
    return reduce(pc.Expression.__or__, told, pc.scalar(False)) if len(told) == len(tests) else None


def _test(schema: pa.Schema, values: Values) -> pc.Expression | None:
    tests = [_is_in(schema.field(name), some) for name, some in values.items()]
    told = [test for test in tests if test is not None]
    return reduce(pc.Expression.__and__, told) if told and len(told) == len(tests) else None


def _is_in(field: pa.Field, values: pa.ChunkedArray) -> pc.Expression | None:
    """None where Spark may take for equal what is not the same."""
    if pa.types.is_integer(field.type) and pa.types.is_integer(values.type):
        values = values.cast(field.type, safe=False)  # what does not fit finds too much at most
    if not is_exact(values.type) or field.type != values.type:
        return None
    some, column = pc.unique(values), pc.field(field.name)
    if some.null_count or not len(some):
        return column.isin(some)
    bounds = pc.min_max(some)  # by which files and row groups are left out
    return (column >= bounds["min"]) & (column <= bounds["max"]) & column.isin(some)


def is_exact(type_: pa.DataType) -> bool:
    """Whether equal values of the type are the same value, in Arrow and in Spark."""
    return any(is_a(type_) for is_a in EXACT)
