"""Net changes and differences of a few rows, computed in this process.

The results equal those of `net` and `diff`. Only types with the same equality here and in Spark are
accepted.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluice.changes.diff import CHANGE
from sluice.changes.feed_columns import CHANGE_TYPE, COMES
from sluice.changes.net import WEIGHT

_OLD, _NEW = "_old", "_new"


def arrow_diff(old: pa.Table, new: pa.Table, key: Sequence[str]) -> pa.Table | None:
    """Return the columns of `new` and CHANGE; None if a column is nested or a key is not plain."""
    if any(map(pa.types.is_nested, new.schema.types)) or not (
        has_plain_keys(old, key) and has_plain_keys(new, key)
    ):
        return None
    old = old.select(new.column_names).cast(new.schema)
    pairs = _numbered(old, key, _OLD).join(_numbered(new, key, _NEW), list(key), None, "full outer")
    both = pairs.filter(pc.field(_OLD).is_valid() & pc.field(_NEW).is_valid())
    was, becomes = old.take(both[_OLD]), new.take(both[_NEW])
    parts = {
        "insert": new.take(pairs.filter(pc.field(_OLD).is_null())[_NEW]),
        "update": becomes.filter(_differ(was, becomes)),
        "delete": old.take(pairs.filter(pc.field(_NEW).is_null())[_OLD]),
    }
    changes = [
        rows.append_column(CHANGE, pa.array([change] * rows.num_rows, pa.string()))
        for change, rows in parts.items()
    ]
    return pa.concat_tables(changes)


def arrow_net(feed: pa.Table, columns: Sequence[str]) -> pa.Table | None:
    """Return `columns` and WEIGHT of the changes, as `net` does; None if a value is not plain."""
    rows = feed.select(list(columns))
    if not all(map(_is_plain, rows.schema.types)):
        return None
    comes = pc.is_in(feed[CHANGE_TYPE], pa.array(COMES))
    rows = rows.append_column(WEIGHT, pc.if_else(comes, 1, -1))
    sums = rows.group_by(list(columns)).aggregate([(WEIGHT, "sum")])
    sums = sums.rename_columns({f"{WEIGHT}_sum": WEIGHT})
    return sums.filter(pc.field(WEIGHT) != 0)


def has_plain_keys(rows: pa.Table, key: Sequence[str]) -> bool:
    """True if equal keys are the same values: no nulls, no floating point, nothing nested."""
    columns = [rows[name] for name in key]
    return all(_is_plain(c.type) and not c.null_count for c in columns)


def _is_plain(type_: pa.DataType) -> bool:
    return not (pa.types.is_floating(type_) or pa.types.is_nested(type_))


def _numbered(rows: pa.Table, key: Sequence[str], name: str) -> pa.Table:
    return rows.select(list(key)).append_column(name, pa.array(np.arange(rows.num_rows)))


def _differ(old: pa.Table, new: pa.Table) -> pa.Array:
    """Return, for each pair of rows, whether any value differs; NaN is a value like any other."""
    found = pa.array(np.zeros(new.num_rows, bool))
    for name in new.column_names:
        a, b = old[name], new[name]
        differs = pc.fill_null(pc.not_equal(a, b), False)
        if pa.types.is_floating(b.type):
            are_nan = pc.and_(pc.fill_null(pc.is_nan(a), False), pc.fill_null(pc.is_nan(b), False))
            differs = pc.and_not(differs, are_nan)
        found = pc.or_(found, pc.or_(differs, pc.xor(pc.is_null(a), pc.is_null(b))))
    return found
