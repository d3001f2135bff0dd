"""Facts without the dimension row that an inner join needs."""

from collections.abc import Iterator, Sequence

from pyspark.sql import functions as F

from sluice.engine.query.absence import Condition, Unmatched
from sluice.engine.query.operator import InputRows, Operator
from sluice.kinds.lookup.operator import LookupJoin
from sluice.kinds.lookup.spec import Join, Lookup


def conditions(spec: Lookup, found: Sequence[Condition]) -> Sequence[Condition]:
    """Return `where` alone: joins are looked at where no fact gets past them."""
    return found


def unmatched(
    operator: Operator, wanted: InputRows, prepared: InputRows, references: InputRows
) -> Iterator[Unmatched]:
    """Yield, for each inner join, the keys of facts that find nothing."""
    assert isinstance(operator, LookupJoin)
    facts = wanted.get(operator.facts.id)
    for join in operator.spec.join:
        if facts is not None and join.type == "inner":
            dimension = operator.dimension(join)
            kept = join.model_copy(update={"type": "left"})
            joined = operator.joined(facts, kept, references[dimension.id])
            keys = [F.expr(fact.sql).alias(column) for fact, column in join.on]
            missed = joined.where(F.col(join.row).isNull()).select(*keys)
            yield Unmatched(dimension.id, _text(join), missed.distinct())


def _text(join: Join) -> str:
    pairs = (f"{fact.text} = {join.qualifier}.{column}" for fact, column in join.on)
    return f"join {join.qualifier} on {' and '.join(pairs)}"
