"""Deliveries of a source's row: its key's last, or all with an equal row."""

from sluice.engine.query.lineage import Groups
from sluice.engine.query.operator import InputRows, Operator
from sluice.sources.operator import LatestOfKey


def contributing(operator: Operator, groups: Groups) -> InputRows:
    """Return the delivered row that is valid for each key, or all of a counted row."""
    if not isinstance(operator, LatestOfKey):
        return groups.prepared
    return {name: operator.latest(found) for name, found in groups.prepared.items()}
