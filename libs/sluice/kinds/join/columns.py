"""Columns that a join's columns are made from."""

from collections.abc import Mapping

from sluice.declare.meaning.column_lineage import MadeFrom, Seen, of_input
from sluice.declare.table import Table
from sluice.kinds.join.resolved_join import ResolvedJoin
from sluice.kinds.join.spec import EquiJoin


def columns(table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
    """Return the columns of both sides that each column, key and shared value reads."""
    spec = table.spec
    assert isinstance(spec, EquiJoin)
    left, right = (inputs[table.reference(side.table)] for side in (spec.left, spec.right))
    shape, sides = ResolvedJoin(spec, left, right), {"left": left, "right": right}
    sees = Seen(qualified={spec.left.as_: left, spec.right.as_: right})
    shared = {on: sees.of(*pair) for on, pair in zip(shape.on, shape.pairs, strict=True)}
    keys = {out: of_input(sides[which], column) for out, (which, column) in shape.keys.items()}
    return {**shared, **keys, **{name: sees.of(e) for name, e in shape.shown.items()}}
