"""Which rows equal which, told in this process where that means the same as in Spark."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from sluice.storage.matches import is_exact

_LEFT, _RIGHT = "_left", "_right"


def matching(facts: pa.Table, rows: pa.Table, on: Mapping[str, str]) -> pa.Array | None:
    """Of each fact the number of the row that it equals, null where there is none.

    `on`: column of the rows -> column of the facts; a null equals nothing. None where a fact has
    several rows, or where equality is not to be told here.
    """
    left, right = [facts[fact] for fact in on.values()], [rows[column] for column in on]
    types = [_comparable(a.type, b.type) for a, b in zip(left, right, strict=True)]
    if any(type_ is None for type_ in types):
        return None
    keys = [f"_{n}" for n in range(len(types))]
    found, other = (
        pa.table({k: c.cast(t) for k, c, t in zip(keys, side, types, strict=True)})
        for side in (left, right)
    )
    found = found.append_column(_LEFT, pa.array(np.arange(facts.num_rows)))
    other = other.append_column(_RIGHT, pa.array(np.arange(rows.num_rows)))
    joined = found.join(other, keys, join_type="left outer")
    if joined.num_rows != facts.num_rows:
        return None
    return pa.concat_arrays(joined.sort_by(_LEFT)[_RIGHT].chunks or [pa.array([], pa.int64())])


def _comparable(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type in which values of both are compared as Spark compares them."""
    if pa.types.is_integer(a) and pa.types.is_integer(b):
        return pa.int64()
    return a if a == b and is_exact(a) else None
