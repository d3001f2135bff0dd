"""Columns that the columns of window functions are made from."""

from collections.abc import Mapping

from sluice.declare.meaning.column_lineage import MadeFrom, Seen, changed, of_input
from sluice.declare.table import Table
from sluice.engine.query.identity import carried
from sluice.kinds.over.resolve import BY
from sluice.kinds.over.spec import Over


def columns(table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
    """Return the columns that each expression and its calls read; not those of the window."""
    spec, source = table.spec, inputs[table.inputs[0]]
    assert isinstance(spec, Over)
    sees = Seen(source)
    shown = {
        n: sees.of(one.expression) | changed(sees.of(*one.read)) for n, one in spec.select.items()
    }
    by = {f"{BY}{i}": sees.of(expression) for i, expression in enumerate(spec.partition_by)}
    hidden = {out: of_input(source, column) for out, column in carried(table, source).items()}
    return {**hidden, **by, **shown}
