"""Rows of a table's files that are still there, and the rows of its change feed.

A row is still there if no deletion vector marks it.

Arrow's own dataset does not support vectors. Without vectors it is used as it is. A file with one
is read by row groups, because only whole ones show the number of each row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

from sluice.delta.log.files import (
    active_files,
    file_name,
    has_vectors,
    kept_rows,
    mask_of,
    partition_of,
)
from sluice.delta.places.delta_rs import files_below
from sluice.language.names import CHANGE_TYPE

if TYPE_CHECKING:
    import pyarrow.dataset as ds

GROUPS = 64  # row groups in memory at a time
MEETS = "_sluice_meets"


@dataclass(frozen=True)
class LiveRows:
    """A dataset, and for each of its files with a vector the rows that are still there."""

    dataset: "ds.FileSystemDataset"
    kept: Mapping[str, pa.BooleanArray]

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        schema: pa.Schema = self.dataset.schema
        return schema

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - Arrow's name
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows that meet a condition, with these columns."""
        names = list(self.schema.names if columns is None else columns)
        if not self.kept:
            yield from self.dataset.to_batches(columns=names, filter=filter)
            return
        for fragment in self.dataset.get_fragments(filter):
            if (kept := self.kept.get(file_name(fragment.path))) is not None:
                yield from self._live(fragment, kept, names, filter)
            else:
                yield from fragment.to_batches(schema=self.schema, columns=names, filter=filter)

    def to_table(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - Arrow's name
    ) -> pa.Table:
        """Return rows like `to_batches`, as a table."""
        if not self.kept:
            return self.dataset.to_table(columns=columns and list(columns), filter=filter)
        names = list(self.schema.names if columns is None else columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        return pa.Table.from_batches(self.to_batches(columns, filter), schema)

    def count_rows(self) -> int:
        """Return the number of rows, without reading them."""
        return int(self.dataset.count_rows() - sum(mask.false_count for mask in self.kept.values()))

    def _live(
        self,
        fragment: "ds.ParquetFileFragment",
        kept: pa.BooleanArray,
        names: Sequence[str],
        where: pc.Expression | None,
    ) -> Iterator[pa.RecordBatch]:
        rows = [group.num_rows for group in fragment.row_groups]
        starts = list(accumulate(rows, initial=0))
        near = fragment if where is None else fragment.subset(where, schema=self.schema)
        ids = [group.id for group in near.row_groups]
        shown = {name: pc.field(name) for name in names}
        test = pc.scalar(True) if where is None else where
        for at in range(0, len(ids), GROUPS):
            some = ids[at : at + GROUPS]
            part = fragment.subset(row_group_ids=some)
            page = part.to_table(schema=self.schema, columns={**shown, MEETS: test})
            live = pa.concat_arrays([mask_of(kept, starts[i], rows[i]) for i in some])
            found = page.filter(pc.and_kleene(page[MEETS], pa.chunked_array([live])))
            yield from found.drop_columns([MEETS]).to_batches()


def live_rows(table: DeltaTable, uri: str, filesystem: FileSystem | None = None) -> LiveRows:
    """Return the rows of a version of the table at `uri`.

    `filesystem`: the one by which its files are read, if it isn't delta-rs' own.
    """
    if not has_vectors(table):
        return LiveRows(table.to_pyarrow_dataset(filesystem=filesystem), {})
    return LiveRows(_dataset(table, uri), kept_rows(table))


def rows_of_files(table: DeltaTable, uri: str, is_chosen: Callable[[str], bool]) -> LiveRows:
    """Return the rows of some files of a version, chosen by their paths in the log."""
    files = [f for f in active_files(table).to_pylist() if is_chosen(f["path"])]
    return LiveRows(_dataset(table, uri, files), kept_rows(table))


def stream_feed(
    table: DeltaTable, after: int, upto: int, columns: Sequence[str] | None = None
) -> pa.RecordBatchReader:
    """Return the feed of versions (after, upto], or these columns of it.

    Raises DeltaError, or one of Arrow's errors while it is read, if a part of it is gone.
    """
    named = None if columns is None else [*columns]
    found = table.load_cdf(after + 1, upto, columns=named, allow_out_of_range=True)
    return pa.RecordBatchReader.from_stream(found)


def change_data(table: DeltaTable, uri: str, files: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the rows of files of change data, as the log names them, with CHANGE_TYPE."""
    schema = pa.schema(table.schema().to_arrow())
    parts = [partition_of(dict(file), schema).items() for file in files]
    typed = [{f"partition.{name}": value for name, value in part} for part in parts]
    named = [{"path": f["path"], **part} for f, part in zip(files, typed, strict=True)]
    rows = _dataset(table, uri, named, schema.append(pa.field(CHANGE_TYPE, pa.string())))
    return rows.to_table()


def _dataset(
    table: DeltaTable,
    uri: str,
    some: Sequence[Mapping[str, Any]] | None = None,
    columns: pa.Schema | None = None,
) -> "ds.FileSystemDataset":
    """Return all rows of the files, which deltalake refuses to do for a table with vectors.

    `some`: only these files. `columns`: what they hold, if it is not what the table does.
    """
    import pyarrow.dataset as ds  # imports pandas, which takes a moment

    files = files_below(uri) if "://" in uri else SubTreeFileSystem(uri, LocalFileSystem())
    schema, format_ = columns or pa.schema(table.schema().to_arrow()), ds.ParquetFileFormat()
    parts = table.metadata().partition_columns
    fragments = [
        format_.make_fragment(unquote(file["path"]), files, _partition(file, parts))
        for file in (active_files(table).to_pylist() if some is None else some)
    ]
    return ds.FileSystemDataset(fragments, schema, format_, files)


def _partition(file: Mapping[str, Any], parts: Sequence[str]) -> pc.Expression:
    values = {name: file[f"partition.{name}"] for name in parts}
    tests = [pc.field(n).is_null() if v is None else pc.field(n) == v for n, v in values.items()]
    return reduce(pc.Expression.__and__, tests, pc.scalar(True))
