"""Conditions that keep rows out of a ranking: after `where`, the last rank that is shown."""

from collections.abc import Iterator, Sequence

from sluice.declare.table_spec import TableSpec
from sluice.engine.query.absence import Condition, Unmatched
from sluice.engine.query.operator import InputRows, Operator
from sluice.kinds.topk.ranks import LARGEST_LIMIT
from sluice.kinds.topk.spec import TopK


def conditions(spec: TopK, found: Sequence[Condition]) -> Sequence[Condition]:
    """Return the conditions with the limit between them: ranks are given before `having`."""
    before = [one for one in found if not one.text.startswith("having")]
    offset = f", offset: {spec.offset}" if spec.offset else ""
    limit = Condition(f"limit: {spec.limit}{offset}", _unlimited, True, spec.rank or None)
    return [*before, limit, *found[len(before) :]]


def unmatched(
    operator: Operator, wanted: InputRows, prepared: InputRows, references: InputRows
) -> Iterator[Unmatched]:
    """Yield nothing: a ranking matches no rows."""
    yield from ()


def _unlimited(spec: TopK) -> TableSpec:
    return spec.model_copy(update={"limit": LARGEST_LIMIT - 1, "offset": 0, "headroom": 0})
