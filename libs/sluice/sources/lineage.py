"""Deliveries that a source's row comes from: its key's last, or all that equal it."""

from sluice.engine.query.lineage import Groups
from sluice.engine.query.operator import Operator, Rows
from sluice.sources.operator import LatestOfKey


def contributing(operator: Operator, groups: Groups) -> Rows:
    """Return the delivered row that stands for each key, or all of a row that is counted."""
    if not isinstance(operator, LatestOfKey):
        return groups.prepared
    return {name: operator.latest(found) for name, found in groups.prepared.items()}
