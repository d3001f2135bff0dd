"""Columns that a select's columns are made from."""

from collections.abc import Mapping

from sluice.declare.meaning.column_lineage import MadeFrom, Seen, changed, of_input
from sluice.declare.table import Table
from sluice.kinds.select.resolve import keys_of
from sluice.kinds.select.spec import Selection


def columns(table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
    """Return the input's columns that each column reads; elements count as their array."""
    spec, source = table.spec, inputs[table.inputs[0]]
    assert isinstance(spec, Selection)
    sees, array = Seen(source), spec.explode
    if array:
        elements = changed(sees.of(array.of))
        sees = Seen(source, made=dict.fromkeys(filter(None, (array.as_, array.position)), elements))
    select = spec.select or {}
    shown = {c: sees.of(select[c]) if select else sees.named(c) for c in table.columns}
    if spec.distinct:
        return shown
    hidden = {out: of_input(source, column) for out, column in keys_of(spec, source).items()}
    return {**hidden, **shown}
