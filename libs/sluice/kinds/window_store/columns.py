"""Columns that a store's columns are made from."""

from collections.abc import Mapping

from sluice.declare.meaning.column_lineage import InputColumns, MadeFrom, Seen, changed, of_input
from sluice.declare.table import Table
from sluice.engine.query import windows
from sluice.engine.query.identity import carried
from sluice.kinds.window_store.spec import WindowStore


def columns(table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
    """Return the input's columns; a window begins at the event time."""
    spec, source = table.spec, inputs[table.inputs[0]]
    assert isinstance(spec, WindowStore)
    sees, time, select = Seen(source), of_input(source, spec.time), spec.select or {}
    start = time if source.type_of(spec.time) == "TIMESTAMP" else changed(time)

    def shown(name: str) -> InputColumns:
        if name in (windows.START, windows.END):
            return start if name == windows.START else changed(time)
        return sees.of(select[name]) if name in select else sees.named(name)

    hidden = {out: of_input(source, column) for out, column in carried(table, source).items()}
    return {**hidden, **{name: shown(name) for name in table.columns}}
