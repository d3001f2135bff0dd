"""Columns of a file with repeated values, which benefit from a dictionary. pyarrow gives every
column one. For keys and sums, it makes a file a quarter larger and three times as long to read. The
reason is that a row group of a few thousand rows holds most values only once.
"""

from collections.abc import Iterator

import pyarrow as pa

SAMPLE = 5_000  # rows
LEAST = 2  # occurrences of each value


def repeated(rows: pa.Table) -> list[str]:
    """Return the stored columns, by their paths in the file, whose values repeat in a sample."""
    sample = rows.slice(0, SAMPLE).combine_chunks()
    leaves = (leaf for name in sample.column_names for leaf in _leaves(_one(sample[name]), name))
    return [path for path, values in leaves if LEAST * len(values.unique()) <= len(values)]


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _leaves(values: pa.Array, path: str) -> Iterator[tuple[str, pa.Array]]:
    """Yield the columns without parts that a column consists of."""
    if pa.types.is_struct(values.type):
        for field, part in zip(values.type, values.flatten(), strict=True):
            yield from _leaves(part, f"{path}.{field.name}")
    elif pa.types.is_map(values.type):
        yield from _leaves(values.keys, f"{path}.key_value.key")
        yield from _leaves(values.items, f"{path}.key_value.value")
    elif pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        yield from _leaves(values.flatten(), f"{path}.list.element")
    else:
        yield path, values
