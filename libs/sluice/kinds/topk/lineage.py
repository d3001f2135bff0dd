"""Rows that a ranked row comes from: the row with its key; others only affect its rank."""

from pyspark.sql import functions as F

from sluice.engine.query.lineage import Groups
from sluice.engine.query.operator import InputRows, Operator, within
from sluice.kinds.topk.operator import TopKView


def contributing(operator: Operator, groups: Groups) -> InputRows:
    """Return the input's, or the state's, row of each row's group and key."""
    key, rows = operator.key, groups.rows
    if isinstance(operator, TopKView):
        places = {name: place for name, place in operator.places.items() if name in key}
        rows = rows.select(*[F.col(f"`{name}`").alias(place) for name, place in places.items()])
        key = tuple(places.values())
    return {name: within(found, rows, key) for name, found in groups.prepared.items()}
