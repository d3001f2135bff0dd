"""Parquet files of a Delta table: footers, kept while they are asked for, and single row groups.

Data files never change once written, so a footer read once is right for every version.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSystem, LocalFileSystem, PyFileSystem, SubTreeFileSystem

from sluice.serving.bounds import Bounds, from_parquet


@lru_cache(maxsize=64)
def filesystem(uri: str) -> FileSystem:
    """The folder at `uri`, local or in an object store."""
    if "://" in uri:
        return PyFileSystem(DeltaStorageHandler(uri))
    return SubTreeFileSystem(uri, LocalFileSystem(use_mmap=True))


@lru_cache(maxsize=128)
def footer(uri: str, path: str) -> pq.FileMetaData:
    """The footer of one file."""
    with filesystem(uri).open_input_file(path) as source:
        return pq.read_metadata(source)


def row_group(uri: str, path: str, index: int, columns: Sequence[str]) -> pa.Table:
    """Those of the columns that the file has, of one row group."""
    with filesystem(uri).open_input_file(path) as source:
        reader = pq.ParquetFile(source, metadata=footer(uri, path))
        present = [c for c in columns if c in reader.schema_arrow.names]
        return reader.read_row_group(index, columns=present, use_threads=False)


def group_bounds(group: pq.RowGroupMetaData, kinds: Mapping[str, pa.DataType]) -> dict[str, Bounds]:
    """The bounds of the columns named in `kinds`, which gives their types."""
    chunks = [group.column(i) for i in range(group.num_columns)]
    return {
        chunk.path_in_schema: from_parquet(
            kinds[chunk.path_in_schema], chunk.statistics, group.num_rows
        )
        for chunk in chunks
        if chunk.path_in_schema in kinds
    }
