"""Rows that a store's row comes from: the last of its key and time, or each of them."""

from sluice.engine.query.lineage import Groups
from sluice.engine.query.operator import InputRows, Operator
from sluice.kinds.window_store.operator import WindowStoreRows


def contributing(operator: Operator, groups: Groups) -> InputRows:
    """Return the input's row that represents each group."""
    assert isinstance(operator, WindowStoreRows)
    if operator.row_wise:
        return groups.prepared
    return {name: operator.last_of_each(found) for name, found in groups.prepared.items()}
