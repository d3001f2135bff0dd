"""Rows that a lookup's row comes from: its fact, and the dimension rows that it found."""

from collections import defaultdict

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.engine.query.lineage import NTH, Groups
from sluice.engine.query.operator import InputRows, Operator, union
from sluice.kinds.lookup.operator import LookupJoin


def contributing(operator: Operator, groups: Groups) -> InputRows:
    """Return the fact of each row, and what each join finds for it."""
    assert isinstance(operator, LookupJoin)
    facts, found = groups.prepared[operator.facts.id], defaultdict[str, list[DataFrame]](list)
    for join in operator.spec.join:
        dimension = operator.dimension(join).id
        joined = operator.joined(facts, join, groups.references[dimension])
        nth = joined.select(F.col(join.row).getField(NTH).alias(NTH))
        found[dimension].append(nth.where(F.col(NTH).isNotNull()))
    return {operator.facts.id: facts} | {name: union(some) for name, some in found.items()}
