"""Columns that a ranking's columns are made from."""

from collections.abc import Mapping

from sluice.declare.meaning.column_lineage import InputColumns, MadeFrom, Seen, changed, of_input
from sluice.declare.table import Table
from sluice.engine.query import windows
from sluice.engine.query.identity import carried
from sluice.kinds.topk.spec import TopK


def columns(table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
    """Return the input's columns; a rank is made from those of the order."""
    spec, source = table.spec, inputs[table.inputs[0]]
    assert isinstance(spec, TopK)
    sees, groups = Seen(source), {named.name: named.expression for named in spec.partition_by}
    if spec.window:
        time = changed(of_input(source, spec.window.time))
        sees = Seen(source, made={windows.START: time, windows.END: time})
    order = changed(sees.of(*(key.expression for key in spec.order_by)))

    def shown(name: str) -> InputColumns:
        if name == spec.rank:
            return order
        expression = groups.get(name) or (spec.select or {}).get(name)
        return sees.of(expression) if expression else sees.named(name)

    hidden = {out: of_input(source, column) for out, column in carried(table, source).items()}
    return {**hidden, **{name: shown(name) for name in table.columns}}
