"""Matching of equal rows in this process, if equality means the same as in Spark."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from sluice.delta.reading.searched_version import is_exact

_LEFT, _RIGHT = "_left", "_right"


def matching(facts: pa.Table, rows: pa.Table, on: Mapping[str, str]) -> pa.Array | None:
    """Return the number of the row that each fact equals; null if there is none.

    `on`: column of the rows -> column of the facts; a null equals nothing. Returns None if a fact
    has several rows, or if equality can't be decided here.
    """
    left, right = [facts[fact] for fact in on.values()], [rows[column] for column in on]
    types = [_comparable(a.type, b.type) for a, b in zip(left, right, strict=True)]
    if any(type_ is None for type_ in types):
        return None
    keys = [f"_{n}" for n in range(len(types))]
    found, other = (
        pa.Table.from_pydict({k: c.cast(t) for k, c, t in zip(keys, side, types, strict=True)})
        for side in (left, right)
    )
    found = found.append_column(_LEFT, pa.array(np.arange(facts.num_rows)))
    other = other.append_column(_RIGHT, pa.array(np.arange(rows.num_rows)))
    joined = found.join(other, keys, join_type="left outer")
    if joined.num_rows != facts.num_rows:
        return None
    return pa.concat_arrays(joined.sort_by(_LEFT)[_RIGHT].chunks or [pa.array([], pa.int64())])


def _comparable(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of both compare as they do in Spark."""
    if pa.types.is_integer(a) and pa.types.is_integer(b):
        return pa.int64()
    return a if a == b and is_exact(a) else None
