"""Parquet files of a Delta table: footers, cached for further reads, and single row groups.

Data files never change once written, so a footer read once is right for every version.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq
from cachetools import LRUCache, cached
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

from sluice.delta.places.delta_rs import files_below
from sluice.read.conditions.bounds import UNKNOWN, Bounds, from_parquet
from sluice.read.conditions.key_order import Place, highest, lowest

FOOTERS = 24_000_000  # bytes of cached footers, as in files; in memory they take seven times that
BOUNDS = 250_000  # bounds of row groups' columns that are cached
FILES = 4_096  # files whose columns are cached
MANY = 24  # column chunks that are worth threads


@lru_cache(maxsize=64)
def filesystem(uri: str) -> FileSystem:
    """Return the folder at `uri`, local or in an object store."""
    if "://" in uri:
        return files_below(uri)
    return SubTreeFileSystem(uri, LocalFileSystem(use_mmap=True))


@cached(LRUCache(FOOTERS, getsizeof=lambda kept: kept.serialized_size), lock=Lock())
def footer(uri: str, path: str) -> pq.FileMetaData:
    """Return the footer of one file."""
    with filesystem(uri).open_input_file(path) as source:
        return pq.read_metadata(source)


@lru_cache(maxsize=FILES)
def leaves(uri: str, path: str) -> Mapping[str, tuple[int, ...]]:
    """Return the column chunks of each top-level column of one file; a nested one has several."""
    schema = footer(uri, path).schema
    found: dict[str, tuple[int, ...]] = {}
    for i in range(len(schema)):
        name = schema.column(i).path.partition(".")[0]
        found[name] = (*found.get(name, ()), i)
    return found


def row_groups(uri: str, path: str, indexes: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Return those of the columns that the file has, of some row groups one after the other."""
    present = [c for c in columns if c in leaves(uri, path)]
    is_far = "://" in uri  # for a local file, gathering pieces takes longer than reading them
    with filesystem(uri).open_input_file(path) as source:
        reader = pq.ParquetFile(source, metadata=footer(uri, path), pre_buffer=is_far)
        many = len(indexes) * len(present) >= MANY
        return reader.read_row_groups(list(indexes), columns=present, use_threads=many)


def stored_bytes(uri: str, path: str, index: int, columns: Sequence[str]) -> int:
    """Return the size of those columns of a row group in the file."""
    group, known = footer(uri, path).row_group(index), leaves(uri, path)
    chunks = (group.column(i) for name in columns for i in known.get(name, ()))
    return sum(chunk.total_compressed_size for chunk in chunks)


@cached(LRUCache(BOUNDS, getsizeof=len), lock=Lock())
def group_bounds(uri: str, path: str, column: str, kind: pa.DataType) -> tuple[Bounds, ...]:
    """Return the bounds of a column in each row group of a file."""
    meta, chunks = footer(uri, path), leaves(uri, path).get(column, ())
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    if len(chunks) != 1:
        return (UNKNOWN,) * len(groups)
    return tuple(
        from_parquet(kind, group.column(chunks[0]).statistics, group.num_rows) for group in groups
    )


@cached(LRUCache(BOUNDS, getsizeof=len), lock=Lock())
def group_places(
    uri: str, path: str, column: str, kind: pa.DataType
) -> tuple[tuple[Place, Place], ...]:
    """Return the first and last place of a column's values in each row group."""
    return tuple((lowest(b), highest(b)) for b in group_bounds(uri, path, column, kind))
