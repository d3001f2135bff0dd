"""Columns that a lookup's columns are made from."""

from collections.abc import Mapping

from sluice.declare.meaning.column_lineage import InputColumns, MadeFrom, Seen, of_input
from sluice.declare.table import Table
from sluice.engine.query.identity import carried
from sluice.kinds.lookup.spec import Lookup


def columns(table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
    """Return the columns of the fact and of the dimensions that each column reads."""
    spec = table.spec
    assert isinstance(spec, Lookup)
    facts = inputs[table.reference(spec.from_)]
    dimensions = {j.qualifier: inputs[table.reference(j.dimension)] for j in spec.join}
    sees = Seen(facts, dimensions)

    def shown(name: str) -> InputColumns:
        if spec.select is not None:
            return sees.of(spec.select[name])
        owner = next(t for t in (facts, *dimensions.values()) if name in t.columns)
        return of_input(owner, name)

    hidden = {out: of_input(facts, column) for out, column in carried(table, facts).items()}
    return {**hidden, **{name: shown(name) for name in table.columns}}
